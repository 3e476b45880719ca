"""Pooling: max with indices, average, L_p, global, and max unpooling."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

import convcore
from convcore.nn import functional as F
from convcore.onnx.operators.padding import padded
from convcore.onnx.operators.registry import operator
from convcore.onnx.operators.windows import Windows
from convcore.onnx.values import Value, integers

_MAX = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
_AVERAGE = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}


def _windows(x: Value, options: dict[str, Any]) -> Windows:
    return Windows(
        x.shape[2:],
        options["kernel_shape"],
        options.get("strides"),
        options.get("dilations"),
        options.get("pads"),
        options.get("auto_pad", "NOTSET"),
    )


def _whole(x: Value, windows: Windows, ceil_mode: int, fill: float) -> Value:
    """Return the image with its pads, and as much more as the last windows need or leave."""
    outs = windows.outputs(ceil_mode)
    before = windows.pads[0]
    after = [
        (o - 1) * s + span - n - b
        for o, s, span, n, b in zip(
            outs, windows.strides, windows.spans, windows.sizes, before, strict=True
        )
    ]
    return padded(x, before, after, fill) if any(before) or any(after) else x


@operator("MaxPool")
def max_pool(
    x: Value, *, outputs: int, ceil_mode: int = 0, storage_order: int = 0, **options: Any
) -> Any:
    """Return the largest of each window, and where in the whole tensor it is."""
    windows = _windows(x, options)
    pool, before = _MAX[windows.rank], windows.pads[0]
    source = x if x.is_floating_point() else x.to(convcore.float32)
    rounding = _rounding_of(windows, ceil_mode)
    if outputs == 1 and rounding is not None:
        y = pool(source, windows.kernel, windows.strides, before, windows.dilations, rounding)
        return _as_of(x, y)
    whole = _whole(source, windows, ceil_mode, -np.inf)
    steps = (windows.kernel, windows.strides, 0, windows.dilations)
    if outputs == 1:
        return _as_of(x, pool(whole, *steps))
    y, places = pool(whole, *steps, return_indices=True)
    y = _as_of(x, y)
    return y, _flat_places(places, windows, whole.shape[2:], x.shape, storage_order)


def _as_of(x: Value, y: Value) -> Value:
    """Return maxima in the dtype of x; a window of pads alone has its lowest integer."""
    if not x.is_floating_point():
        y = y.clamp(min=convcore.iinfo(x.dtype).min).to(x.dtype)
    return y


def _rounding_of(windows: Windows, ceil_mode: int) -> bool | None:
    """Return the ceil_mode with which equal pads on both sides give the same windows, or None."""
    before, outs = windows.pads[0], windows.outputs(ceil_mode)
    if any(2 * b > k for b, k in zip(before, windows.kernel, strict=True)):
        return None
    even = copy(windows)
    even.pads = before, before
    return next((bool(ceil) for ceil in (0, 1) if even.outputs(ceil) == outs), None)


def _flat_places(
    places: Value, windows: Windows, padded_sizes: Any, shape: Any, storage_order: int
) -> Value:
    """Return indices into the padded image of a channel as indices into the whole tensor.

    The maximum of a window whose pixels are all -inf may be at a pad: its first pixel is meant.
    """
    coordinates = np.unravel_index(places.numpy(), tuple(padded_sizes))
    inside = [c - b for c, b in zip(coordinates, windows.pads[0], strict=True)]
    is_pad = np.logical_or.reduce(
        [(c < 0) | (c >= n) for c, n in zip(inside, windows.sizes, strict=True)]
    )
    if is_pad.any():
        begins = np.meshgrid(*map(_first_inside, *_ends(windows, places.shape)), indexing="ij")
        inside = [np.where(is_pad, b, c) for b, c in zip(begins, inside, strict=True)]
    step, strides, sizes = 1, {}, list(shape[2:])
    for axis in range(len(sizes)) if storage_order else reversed(range(len(sizes))):
        strides[axis] = step
        step *= sizes[axis]
    flat = sum(c * strides[axis] for axis, c in enumerate(inside))
    first = np.arange(shape[0] * shape[1]).reshape(shape[0], shape[1], *(1,) * len(sizes)) * step
    return convcore.from_numpy(np.asarray(flat + first, np.int64))


def _ends(windows: Windows, shape: Any) -> tuple[list, ...]:
    """Return what `_first_inside` takes, for each axis."""
    return windows.sizes, list(shape[2:]), windows.strides, windows.dilations, windows.pads[0]


def _first_inside(size: int, count: int, stride: int, dilation: int, before: int) -> np.ndarray:
    """Return the first pixel of each window along an axis that is no pad."""
    start = np.arange(count) * stride - before
    return np.minimum(start + np.maximum(-(start // dilation), 0) * dilation, size - 1)


@operator("AveragePool")
def average_pool(
    x: Value, *, ceil_mode: int = 0, count_include_pad: int = 0, **options: Any
) -> Value:
    """Return the mean of each window, over the pixels of the image or of the pads too."""
    windows, rank = _windows(x, options), x.ndim - 2
    has_pads = windows.pads != ([0] * rank, [0] * rank)
    if not has_pads and not ceil_mode and windows.dilations == [1] * rank:
        return _AVERAGE[rank](x, windows.kernel, windows.strides)
    total = _sum_of_windows(_whole(x, windows, ceil_mode, 0.0), windows)
    counted = _whole(x.new_ones(1, 1, *x.shape[2:]), windows, ceil_mode, 0.0)
    if count_include_pad:  # but not what is beyond the pads, which ceil_mode reads
        before, after = windows.pads
        padded_sizes = [b + n + a for b, n, a in zip(before, x.shape[2:], after, strict=True)]
        ends = [min(n, m) for n, m in zip(padded_sizes, counted.shape[2:], strict=True)]
        beyond = [m - n for n, m in zip(ends, counted.shape[2:], strict=True)]
        counted = padded(x.new_ones(1, 1, *ends), [0] * rank, beyond)
    # Dilated windows may have all their pixels in the pads: their mean is 0, as in ONNX Runtime.
    return total / _sum_of_windows(counted, windows).clamp(min=1)


def _sum_of_windows(x: Value, windows: Windows) -> Value:
    """Return the sum of each window: a convolution of each channel with ones."""
    n, c = x.shape[:2]
    images = x.reshape(n * c, 1, *x.shape[2:])
    ones = x.new_ones(1, 1, *windows.kernel)
    function = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[windows.rank]
    y = function(images, ones, None, windows.strides, 0, windows.dilations)
    return y.reshape(n, c, *y.shape[2:])


@operator("LpPool")
def lp_pool(x: Value, *, p: float = 2, ceil_mode: int = 0, **options: Any) -> Value:
    """Return the L_p norm of each window."""
    windows = _windows(x, options)
    powers = _whole(x.abs() ** p, windows, ceil_mode, 0.0)
    return _sum_of_windows(powers, windows) ** (1 / p)


@operator("GlobalAveragePool")
def global_average_pool(x: Value) -> Value:
    """Return the mean of each channel."""
    return x.mean(tuple(range(2, x.ndim)), keepdim=True)


@operator("GlobalMaxPool")
def global_max_pool(x: Value) -> Value:
    """Return the largest element of each channel."""
    return x.amax(tuple(range(2, x.ndim)), keepdim=True)


@operator("GlobalLpPool")
def global_lp_pool(x: Value, *, p: float = 2) -> Value:
    """Return the L_p norm of each channel."""
    return (x.abs() ** p).sum(tuple(range(2, x.ndim)), keepdim=True) ** (1 / p)


@operator("MaxUnpool")
def max_unpool(
    x: Value,
    places: Value,
    output_shape: Value = None,
    *,
    kernel_shape: list[int],
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Value:
    """Return an image with the maxima at their places, 0 elsewhere."""
    rank = x.ndim - 2
    pads, strides = pads or [0] * 2 * rank, strides or [1] * rank
    sizes = [
        (n - 1) * s + k - b - a
        for n, s, k, b, a in zip(
            x.shape[2:], strides, kernel_shape, pads[:rank], pads[rank:], strict=True
        )
    ]
    natural = [*x.shape[:2], *sizes]
    whole = x.new_zeros(natural).reshape(-1)
    y = whole.scatter(0, places.reshape(-1), x.reshape(-1)).reshape(natural)
    if output_shape is None:
        return y
    wanted = integers(output_shape)
    return padded(y, [0] * rank, [w - s for w, s in zip(wanted[2:], sizes, strict=True)])
