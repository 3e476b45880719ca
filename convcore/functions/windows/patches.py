"""unfold, fold (im2col, col2im), pixel and channel shuffles, with their gradients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from convcore import engine
from convcore._tensor import Tensor, wrap
from convcore._tensor.meta import MetaArray, meta
from convcore.autograd.node import record
from convcore.engine.geometry import Axis, index, indices, is_sequence
from convcore.engine.runtime import layout
from convcore.functions._support.arguments import check_kind, check_tensor, computed
from convcore.functions.elementwise.in_float32 import in_float32

__all__ = ["channel_shuffle", "fold", "pixel_shuffle", "pixel_unshuffle", "unfold"]

Pair = tuple[int, int]
Window = tuple[Pair, Pair, Pair, Pair]  # kernel_size, dilation, padding, stride


@in_float32
def unfold(
    input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Copy the patch under the kernel at every output pixel into a column (im2col).

    Parameters
    ----------
    input : (N, C, H, W) or (C, H, W), floating or complex
    kernel_size, dilation, padding, stride : int, or one for H and one for W

    Returns
    -------
    (N, C*KH*KW, P) or (C*KH*KW, P)
        P is the number of places of the kernel.

    Raises
    ------
    TypeError
        A parameter is no int and no pair of ints.
    RuntimeError
        A parameter out of its range; an empty image; a kernel that does not fit.
    NotImplementedError
        Another dtype.

    Notes
    -----
    The result is KH*KW times as large as the input.  Convolutions never make it.

    Examples
    --------
    >>> import convcore
    >>> unfold(convcore.tensor([[[1.0, 2.0, 3.0]]]), (1, 2))
    tensor([[1., 2.],
            [2., 3.]])
    """
    check_tensor("unfold", input)
    check_kind("im2col_out_cpu", input, "fc")
    array = input._array
    window = _window(kernel_size, dilation, padding, stride)
    if array.ndim not in (3, 4) or 0 in array.shape[-3:]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {list(array.shape)}"
        )
    _check_blocks(array.shape[-2:], window)
    return _unfold(input, window)


@in_float32
def fold(
    input: Tensor,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Tensor:
    """Add every column to its patch of the image (col2im); the adjoint of `unfold`.

    Parameters
    ----------
    input : (N, C*KH*KW, P) or (C*KH*KW, P), floating or complex
    output_size : int, or (H, W)
    kernel_size, dilation, padding, stride
        As for `unfold`.

    Returns
    -------
    (N, C, H, W) or (C, H, W)

    Raises
    ------
    TypeError, RuntimeError, NotImplementedError
        As `unfold`; also if the sizes of input do not fit the others.

    Examples
    --------
    >>> import convcore
    >>> fold(convcore.tensor([[1.0, 2.0], [2.0, 3.0]]), (1, 3), (1, 2))
    tensor([[[1., 4., 3.]]])
    """
    check_tensor("fold", input)
    check_kind("col2im_out_cpu", input, "fc")
    array = input._array
    sizes = _pair("output_size", output_size)
    window = _window(kernel_size, dilation, padding, stride)
    if array.ndim not in (2, 3) or 0 in array.shape[-2:]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and "
            f"non-zero dimensions for input, but got: {list(array.shape)}"
        )
    kernel = window[0]
    if array.shape[-2] % math.prod(kernel):
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, "
            f"but got input.size(1)={array.shape[-2]} and kernel_size={kernel}."
        )
    _check_columns(array.shape[-1], sizes, window)
    return _fold(input, sizes, window)


def _unfold(x: Tensor, window: Window) -> Tensor:
    array = x._array
    columns = computed(engine.unfold, _wide(array), *window)
    output = wrap(columns.astype(array.dtype, copy=False))
    sizes = array.shape[-2:]
    record("Im2ColBackward0", (x,), output, lambda needs, grad: _fold(grad, sizes, window))
    return output


def _fold(x: Tensor, sizes: Pair, window: Window) -> Tensor:
    array = x._array
    image = computed(engine.fold, _wide(array), sizes, *window)
    output = wrap(image.astype(array.dtype, copy=False))
    record("Col2ImBackward0", (x,), output, lambda needs, grad: _unfold(grad, window))
    return output


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Spread r*r channels over r by r pixels: output[c, h*r+i, w*r+j] = input[(c, i, j), h, w].

    Parameters
    ----------
    input : (..., C*r*r, H, W)
    upscale_factor : int
        r, at least 1.

    Returns
    -------
    (..., C, H*r, W*r)

    Raises
    ------
    TypeError
        upscale_factor is no int.
    RuntimeError
        Fewer than three axes, a factor below 1, or channels that r*r does not divide.

    References
    ----------
    W. Shi et al., Real-time single image and video super-resolution using an efficient sub-pixel
    convolutional neural network (2016), section 3.

    Examples
    --------
    >>> import convcore
    >>> pixel_shuffle(convcore.tensor([[[1.0]], [[2.0]], [[3.0]], [[4.0]]]), 2)
    tensor([[[1., 2.],
             [3., 4.]]])
    """
    array, r = _check_shuffle("pixel_shuffle", "upscale_factor", input, upscale_factor)
    *lead, channels, h, w = array.shape
    if channels % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square "
            f"of upscale_factor, but input.size(-3)={channels} is not divisible by {r * r}"
        )
    c = channels // (r * r)
    output = _empty_like(array, (*lead, c, h * r, w * r))
    pixels = output.reshape(*lead, c, h, r, w, r)  # axes that are only split: a view
    pixels[...] = np.moveaxis(array.reshape(*lead, c, r, r, h, w), (-4, -3), (-3, -1))
    result = wrap(output)
    record("PixelShuffleBackward0", (input,), result, lambda needs, grad: pixel_unshuffle(grad, r))
    return result


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Gather r by r pixels into r*r channels: the inverse of `pixel_shuffle`.

    Parameters
    ----------
    input : (..., C, H*r, W*r)
    downscale_factor : int
        r, at least 1.

    Returns
    -------
    (..., C*r*r, H, W)

    Raises
    ------
    TypeError
        downscale_factor is no int.
    RuntimeError
        Fewer than three axes, a factor below 1, or sizes that r does not divide.

    Examples
    --------
    >>> import convcore
    >>> pixel_unshuffle(convcore.tensor([[[1.0, 2.0], [3.0, 4.0]]]), 2).tolist()
    [[[1.0]], [[2.0]], [[3.0]], [[4.0]]]
    """
    array, r = _check_shuffle("pixel_unshuffle", "downscale_factor", input, downscale_factor)
    *lead, c, height, width = array.shape
    for name, axis in (("height", -2), ("width", -1)):
        if array.shape[axis] % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but "
                f"input.size({axis})={array.shape[axis]} is not divisible by {r}"
            )
    h, w = height // r, width // r
    output = _empty_like(array, (*lead, c * r * r, h, w))
    channels = output.reshape(*lead, c, r, r, h, w)  # an axis that is only split: a view
    channels[...] = np.moveaxis(array.reshape(*lead, c, h, r, w, r), (-3, -1), (-4, -3))
    result = wrap(output)
    record("PixelUnshuffleBackward0", (input,), result, lambda needs, grad: pixel_shuffle(grad, r))
    return result


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Shuffle channels: take them in turn from each group of neighbouring channels.

    Parameters
    ----------
    input : (N, C, *sizes), with one spatial axis at least
    groups : int
        It divides C.

    References
    ----------
    X. Zhang, X. Zhou, M. Lin, J. Sun, "ShuffleNet", CVPR 2018.
    """
    check_tensor("channel_shuffle", input)
    array, groups = input._array, index("groups", groups)
    if array.ndim <= 2:
        raise RuntimeError(
            "channel_shuffle expects input with > 2 dims, but got input with sizes "
            f"{list(array.shape)}"
        )
    if groups < 1:
        raise RuntimeError(
            f"Number of groups to divide channels in must be positive. Value of groups:{groups}"
        )
    channels = array.shape[1]
    if channels % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {channels} channels and "
            f"{groups} groups."
        )
    output = _empty_like(array, array.shape)
    order = np.arange(channels).reshape(groups, -1).T.reshape(-1)
    output[...] = array[:, order]
    result = wrap(output)
    back = lambda needs, grad: channel_shuffle(grad, channels // groups)  # noqa: E731
    record("NativeChannelShuffleBackward0", (input,), result, back)
    return result


def _check_shuffle(function: str, name: str, input: Any, factor: Any) -> tuple[np.ndarray, int]:
    check_tensor(function, input)
    if is_sequence(factor) or isinstance(factor, float):
        raise TypeError(
            f"{function}(): argument '{name}' (position 2) must be int, not {type(factor).__name__}"
        )
    r = index(name, factor)
    if r < 1:
        raise RuntimeError(f"{function} expects a positive {name}, but got {r}")
    array = input._array
    if array.ndim < 3:
        raise RuntimeError(
            f"{function} expects input to have at least 3 dimensions, "
            f"but got input with {array.ndim} dimension(s)"
        )
    return array, r


def _empty_like(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return a new array of the shape in the memory format of another, and on its device."""
    if isinstance(array, MetaArray):
        return meta(shape, array.dtype)
    channels_last = layout.is_channels_last(array.shape, array.strides)
    return layout.empty(shape, array.dtype, channels_last)


def _wide(array: np.ndarray) -> np.ndarray:
    """Return the array as the engine takes it: float16 in float32."""
    return array.astype(np.float32) if array.dtype == np.float16 else array


def _pair(name: str, value: Any) -> Pair:
    values = tuple(value) if is_sequence(value) else (value, value)
    if len(values) != 2:
        raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(values)}")
    first, second = indices(name, values)
    return first, second


def _window(kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Window:
    kernel, dilations = _pair("kernel_size", kernel_size), _pair("dilation", dilation)
    pads, strides = _pair("padding", padding), _pair("stride", stride)
    for label, prefix, pair in (
        ("kernel size", "kernel", kernel),
        ("stride", "stride", strides),
        ("dilation", "dilation", dilations),
    ):
        if min(pair) < 1:
            raise RuntimeError(
                f"{label} should be greater than zero, "
                f"but got {prefix}_height: {pair[0]} {prefix}_width: {pair[1]}"
            )
    if min(pads) < 0:
        raise RuntimeError(
            f"padding should be non-negative, but got pad_height: {pads[0]} pad_width: {pads[1]}"
        )
    return kernel, dilations, pads, strides


def _blocks(sizes: Pair, window: Window) -> Pair:
    """Return the number of kernel positions along each axis; below 1 if it does not fit."""
    kernel, dilations, pads, strides = window
    height, width = (
        Axis(sizes[i], kernel[i], strides[i], dilations[i], pads[i], pads[i]).out for i in (0, 1)
    )
    return height, width


def _check_blocks(sizes: Pair, window: Window) -> None:
    blocks = _blocks(sizes, window)
    if min(blocks) < 1:
        kernel, dilations, pads, _ = window
        raise RuntimeError(
            f"Given input with spatial size {tuple(sizes)}, kernel_size={kernel}, "
            f"dilation={dilations}, padding={pads}, calculated shape of the array of sliding "
            f"blocks as {blocks}, but its components must be at least one."
        )


def _check_columns(columns: int, sizes: Pair, window: Window) -> None:
    height, width = _blocks(sizes, window)
    kernel, dilations, pads, strides = window
    given = (
        f"Given output_size={sizes}, kernel_size={kernel}, dilation={dilations}, "
        f"padding={pads}, stride={strides}"
    )
    if columns != height * width:
        raise RuntimeError(
            f"{given}, expected size of input's dimension 2 to match the calculated number of "
            f"sliding blocks {height} * {width} = {height * width}, "
            f"but got input.size(2)={columns}."
        )
    if min(height, width) < 1:
        raise RuntimeError(
            f"{given}, calculated shape of the array of sliding blocks as {(height, width)}, "
            "which is too small (non-positive)"
        )
