"""Convolutions: direct, transposed, of integers, deformable; col2im."""

from __future__ import annotations

from typing import Any

import convcore
from convcore.nn import functional as F
from convcore.onnx.operators.padding import padded
from convcore.onnx.operators.registry import operator
from convcore.onnx.operators.windows import Windows
from convcore.onnx.values import Value, integers

_CONVOLUTIONS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


@operator("Conv", weights=(1, 2))
def conv(
    x: Value,
    weight: Value,
    bias: Value = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: list[int] | None = None,
    group: int = 1,
    kernel_shape: list[int] | None = None,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Value:
    """Return the convolution, with pads of their own before and after."""
    windows = Windows(x.shape[2:], weight.shape[2:], strides, dilations, pads, auto_pad)
    before, after = windows.pads
    if before == after:
        padding = before
    else:
        x, padding = padded(x, before, after), [0] * windows.rank
    return _CONVOLUTIONS[windows.rank](
        x, weight, bias, windows.strides, padding, windows.dilations, group
    )


@operator("ConvTranspose", weights=(1, 2))
def conv_transpose(
    x: Value,
    weight: Value,
    bias: Value = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: list[int] | None = None,
    group: int = 1,
    kernel_shape: list[int] | None = None,
    output_padding: list[int] | None = None,
    output_shape: list[int] | None = None,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Value:
    """Return the transposed convolution: the whole of it, and then what the pads leave."""
    rank = x.ndim - 2
    strides, dilations = strides or [1] * rank, dilations or [1] * rank
    extra = output_padding or [0] * rank
    whole = [
        (n - 1) * s + d * (k - 1) + 1 + e
        for n, s, d, k, e in zip(
            x.shape[2:], strides, dilations, weight.shape[2:], extra, strict=True
        )
    ]
    if output_shape is None and auto_pad.startswith("SAME"):
        output_shape = [n * s for n, s in zip(x.shape[2:], strides, strict=True)]
    if output_shape is not None:
        # What is asked for beyond the whole is added at the end, as in ONNX Runtime.
        missing = [w - o for w, o in zip(whole, output_shape[-rank:], strict=True)]
        total = [max(m, 0) for m in missing]
        small = [t // 2 for t in total]
        large = [t - s for t, s in zip(total, small, strict=True)]
        before, after = (small, large) if auto_pad == "SAME_UPPER" else (large, small)
        after = [a + min(m, 0) for a, m in zip(after, missing, strict=True)]
    else:
        pads = [0] * (2 * rank) if pads is None or auto_pad == "VALID" else pads
        before, after = pads[:rank], pads[rank:]
    # PyTorch's padding is cut from both sides alike; its output_padding is less than a stride.
    if before == after and min(before) >= 0:
        return _TRANSPOSED[rank](x, weight, bias, strides, before, extra, group, dilations)
    y = _TRANSPOSED[rank](x, weight, bias, strides, 0, 0, group, dilations)
    cut = [-b for b in before], [e - a for e, a in zip(extra, after, strict=True)]
    if bias is None or all(c <= 0 for c in cut[1]):
        return padded(y, *cut)
    shape = [1, -1, *(1,) * rank]  # what is beyond the last window has the bias alone
    return padded(y - bias.reshape(shape), *cut) + bias.reshape(shape)


@operator("ConvInteger")
def conv_integer(
    x: Value, weight: Value, x_zero: Value = None, weight_zero: Value = None, **options: Any
) -> Value:
    """Return the convolution of integers: exact in float64."""
    x, weight = x.to(convcore.float64), weight.to(convcore.float64)
    if x_zero is not None:
        x = x - x_zero.to(convcore.float64)
    if weight_zero is not None:
        zero = weight_zero.to(convcore.float64)
        weight = weight - zero.reshape([-1, *(1,) * (weight.ndim - 1)] if zero.ndim else [])
    return conv(x, weight, None, **options).to(convcore.int32)


@operator("Col2Im")
def col2im(
    x: Value,
    image_shape: Value,
    block_shape: Value,
    *,
    dilations: list[int] | None = None,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Value:
    """Return an image as the sum of its columns (N, C * KH * KW, OH * OW)."""
    sizes, kernel = integers(image_shape), integers(block_shape)
    windows = Windows(sizes, kernel, strides, dilations, pads, "NOTSET")
    n, rank = x.shape[0], windows.rank
    channels = x.shape[1] // convcore.Size(kernel).numel()
    outs = windows.outputs()
    columns = x.reshape(n * channels, *kernel, *outs)
    # The adjoint of taking windows is a transposed convolution by one-hot kernels.
    taps = convcore.Size(kernel).numel()
    one_hot = convcore.eye(taps, dtype=x.dtype).reshape(taps, 1, *kernel)
    y = conv_transpose(
        columns.reshape(n * channels, taps, *outs),
        one_hot,
        strides=windows.strides,
        dilations=windows.dilations,
    )
    before, after = windows.pads
    whole = [b + s + a for b, s, a in zip(before, sizes, after, strict=True)]
    missing = [w - m for w, m in zip(whole, y.shape[2:], strict=True)]
    y = padded(y, [-b for b in before], [m - a for m, a in zip(missing, after, strict=True)])
    return y.reshape(n, channels, *sizes[:rank])


@operator("DeformConv", weights=(1, 3))
def deform_conv(
    x: Value,
    weight: Value,
    offset: Value,
    bias: Value = None,
    mask: Value = None,
    *,
    dilations: list[int] | None = None,
    group: int = 1,
    kernel_shape: list[int] | None = None,
    offset_group: int = 1,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Value:
    """Return a 2-d convolution that reads each tap at an offset, bilinearly, 0 outside."""
    windows = Windows(x.shape[2:], weight.shape[2:], strides, dilations, pads, "NOTSET")
    (n, c, h, w), (kh, kw) = x.shape, weight.shape[2:]
    oh, ow = windows.outputs()
    # In float64: places are given in pixels, and read in parts of the image's size.
    offsets = offset.reshape(n, offset_group, kh * kw, 2, oh, ow).to(convcore.float64)
    (top, left), _ = windows.pads
    (sh, sw), (dh, dw) = windows.strides, windows.dilations
    taps = []
    for tap in range(kh * kw):
        row = convcore.arange(oh, dtype=offsets.dtype).reshape(-1, 1) * sh - top + tap // kw * dh
        column = convcore.arange(ow, dtype=offsets.dtype) * sw - left + tap % kw * dw
        rows, columns = row + offsets[:, :, tap, 0], column + offsets[:, :, tap, 1]
        grid = convcore.stack(((2 * columns + 1) / w - 1, (2 * rows + 1) / h - 1), -1)
        images = x.reshape(n * offset_group, c // offset_group, h, w)
        seen = F.grid_sample(
            images.to(convcore.float64),
            grid.reshape(n * offset_group, oh, ow, 2),
            *("bilinear", "zeros", False),
        ).to(x.dtype)
        seen = seen.reshape(n, offset_group, c // offset_group, oh, ow)
        if mask is not None:
            seen = seen * mask.reshape(n, offset_group, kh * kw, 1, oh, ow)[:, :, tap]
        taps.append(seen.reshape(n, group, c // group, oh * ow))
    columns = convcore.stack(taps, 3).reshape(n, group, -1, oh * ow)
    y = convcore.matmul(weight.reshape(group, weight.shape[0] // group, -1), columns)
    y = y.reshape(n, weight.shape[0], oh, ow)
    return y if bias is None else y + bias.reshape(1, -1, 1, 1)
