"""Interpolation of uint8 images with integer weights and uint8 intermediates, as in PyTorch.

The result differs by about one step from rounded float interpolation; by more where cubic weights
exceed the byte range between the axes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from convcore.engine.layers.interpolation.interpolation import WEIGHTS, Scales, _filtered, _step
from convcore.engine.runtime.checks import Array


def interpolate_bytes(
    input: Array,
    output_size: Sequence[int],
    mode: str,
    align_corners: bool = False,
    scales: Scales | None = None,
    antialias: bool = False,
) -> Array:
    """Resize uint8 images.

    Parameters
    ----------
    input : (N, C, H, W); uint8
    output_size : (OH, OW)
    mode : 'linear', 'cubic' or 'lanczos'
    align_corners, scales, antialias : as for `interpolate`

    Returns
    -------
    (N, C, OH, OW); uint8, channels_last if the input is
    """
    scales = scales or (None, None)
    for axis in (1, 0):  # rows first, then columns
        size, out = input.shape[2 + axis], output_size[axis]
        if size != out:
            source, weight = _taps(size, out, mode, align_corners, scales[axis], antialias)
            input = _summed(input, 2 + axis, source, *_whole(weight))
    return input.copy(order="K")


def _taps(
    size: int, out: int, mode: str, align: bool, scale: float | None, antialias: bool
) -> tuple[Array, Array]:
    """Return the sources and weights of each output, (out, K); unused taps have weight 0."""
    step = _step(size, out, scale, align, np.float64)
    if antialias:
        found = _filtered(size, out, step, mode, align, np.float64)
        row = np.repeat(np.arange(out), np.diff(found.begin))
        source, weight = found.source, found.weight
    else:
        sources, weights = WEIGHTS[mode](size, out, step, align, np.float64)
        row = np.repeat(np.arange(out), sources.shape[1])
        source, weight = sources.ravel(), weights.ravel()
    # At the border one pixel may be several taps: their weights are added before rounding.
    low = np.full(out, size)
    np.minimum.at(low, row, source)
    place = source - low[row]
    count = int(place.max()) + 1
    joint = np.bincount(row * count + place, weight, out * count).reshape(out, count)
    return np.minimum(low[:, np.newaxis] + np.arange(count), size - 1), joint


def _whole(weight: Array) -> tuple[Array, int]:
    """Return weights as 16-bit integers, scaled by the largest power of two, and its exponent."""
    bits, most = 0, weight.max()
    while bits < 22 and int(0.5 + most * 2 ** (bits + 1)) < 2**15:
        bits += 1
    return np.trunc(weight * 2**bits + np.copysign(0.5, weight)).astype(np.int32), bits


def _summed(images: Array, axis: int, source: Array, weight: Array, bits: int) -> Array:
    """Return weighted sums along an axis, rounded to uint8."""
    total: Array = np.int32(1 << (bits - 1))  # type: ignore[assignment]
    shape = (-1, *(1,) * (images.ndim - 1 - axis))
    for k in range(source.shape[1]):
        taken = images.take(source[:, k], axis).astype(np.int32)
        total = total + taken * weight[:, k].reshape(shape)
    return np.clip(total >> bits, 0, 255).astype(np.uint8)
