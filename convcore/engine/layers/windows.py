"""Windows along an axis: which elements the taps of pooling and the borders of padding read.

Everything here is one linear map along one axis, written as a list of moves.  A move is a slice of
the target and a slice of the source that meet element by element; where one of the two has a single
element, it meets all of the other's.  With the two slices of every move exchanged, the same list is
the map's adjoint.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from convcore.engine.geometry import Axis, Spatial, is_sequence, per_axis

Move = tuple[slice, slice]  # (target, source)

# NumPy goes over an array by blocks of whole planes, so that what it writes between two passes is
# still in the cache; smaller ones, and calls would take longer than what they do.
BLOCK_BYTES = 1 << 20


def pool_axes(
    channels: int,
    sizes: Sequence[int],
    kernel: Sequence[int],
    stride: Spatial | None,
    padding: Spatial,
    dilation: Spatial = 1,
    ceil_mode: bool = False,
) -> tuple[Axis, ...]:
    """Check the steps of a pool and return its axes.

    ``before`` is the padding of either side.  ``after`` is what makes ``out`` right: with
    ceil_mode the last window may reach beyond the padding, though it may not begin there.

    Raises
    ------
    TypeError, ValueError
        A parameter is not an int or one int an axis; a kernel, stride or dilation below 1; a pad
        that is negative or longer than half the kernel's extent; no window fits.
    """
    rank = len(kernel)
    omitted = stride is None or (is_sequence(stride) and len(stride) == 0)
    strides = per_axis("stride", kernel if omitted else stride, rank)
    pads = per_axis("padding", padding, rank)
    dilations = per_axis("dilation", dilation, rank)
    if min(kernel) < 1:
        raise ValueError(f"kernel size should be greater than zero, got {list(kernel)}")
    if min(strides) < 1:
        raise ValueError(
            "stride should not be zero" + (f" or less, got {list(strides)}" if any(strides) else "")
        )
    if min(dilations) < 1:
        raise ValueError(f"dilation should be greater than zero, got {list(dilations)}")
    for p, k, d in zip(pads, kernel, dilations, strict=True):
        if p < 0:
            raise ValueError(f"pad must be non-negative, but got pad: {p}")
        if p > (d * (k - 1) + 1) // 2:
            raise ValueError(
                "pad should be at most half of effective kernel size, "
                f"but got pad={p}, kernel_size={k} and dilation={d}"
            )
    axes = tuple(
        _pool_axis(*steps, ceil_mode)
        for steps in zip(sizes, kernel, strides, dilations, pads, strict=True)
    )
    if min(a.out for a in axes) < 1:
        raise ValueError(
            f"Given input size: ({_by((channels, *sizes))}). Calculated output size: "
            f"({_by((channels, *(max(a.out, 0) for a in axes)))}). Output size is too small"
        )
    return axes


def _pool_axis(size: int, kernel: int, stride: int, dilation: int, pad: int, ceil: bool) -> Axis:
    axis = Axis(size, kernel, stride, dilation, pad, pad)
    if not ceil:
        return axis
    out = -((axis.extent - axis.padded) // stride) + 1
    if (out - 1) * stride >= size + pad:
        out -= 1
    after = (out - 1) * stride + axis.extent - size - pad
    return Axis(size, kernel, stride, dilation, pad, after)


def tap_moves(axis: Axis) -> list[Move]:
    """Return (outputs, inputs) for each tap of the kernel; both empty if it meets only padding."""
    moves = []
    for tap in range(axis.kernel):
        shift = tap * axis.dilation - axis.before  # input = output * stride + shift
        first = max(0, -(shift // axis.stride))
        last = min(axis.out - 1, (axis.size - 1 - shift) // axis.stride)
        if first > last:
            moves.append((slice(0, 0), slice(0, 0)))
            continue
        start, stop = (output * axis.stride + shift for output in (first, last))
        moves.append((slice(first, last + 1), slice(start, stop + 1, axis.stride)))
    return moves


def first_taps(axis: Axis) -> np.ndarray:
    """Return, for each output, the first tap that does not fall on the padding before."""
    missing = axis.before - np.arange(axis.out) * axis.stride
    return np.maximum(-(-missing // axis.dilation), 0)


def clipped_windows(axis: Axis) -> list[slice]:
    """Return what each output's window covers of the input, its padding left out."""
    starts = np.arange(axis.out) * axis.stride - axis.before
    firsts = starts + first_taps(axis) * axis.dilation
    return [
        slice(int(first), min(int(start) + axis.extent, axis.size), axis.dilation)
        for first, start in zip(firsts, starts, strict=True)
    ]


def adaptive_windows(size: int, out: int) -> list[slice]:
    """Return ``out`` windows that cover ``size`` elements as evenly as whole elements can.

    Window i is [floor(i*size/out), ceil((i+1)*size/out)); neighbours may share elements.
    """
    return [slice(i * size // out, -(-(i + 1) * size // out)) for i in range(out)]


def window_moves(windows: Sequence[slice]) -> list[Move]:
    """Return (one output, its window) for each window."""
    return [(slice(i, i + 1), window) for i, window in enumerate(windows)]


def adjoint(moves: Iterable[Move]) -> list[Move]:
    """Return the moves with target and source exchanged."""
    return [(source, target) for target, source in moves]


def add_moved(target: np.ndarray, source: np.ndarray, moves: Sequence[Sequence[Move]]) -> None:
    """Add source to target by every combination of moves, one list for each of the last axes.

    Several elements that meet a single one of the target are summed.
    """
    for combination in itertools.product(*moves):
        into: Any = (..., *(move[0] for move in combination))
        come: Any = (..., *(move[1] for move in combination))
        place, piece = target[into], source[come]
        folded = tuple(
            axis for axis in range(target.ndim) if place.shape[axis] == 1 and piece.shape[axis] != 1
        )
        if folded:
            piece = piece.sum(axis=folded, keepdims=True, dtype=target.dtype)
        place += piece


def blocks(shape: Sequence[int], itemsize: int) -> Iterator[tuple[slice, slice]]:
    """Yield indices of an (N, C, *sizes) array that cut it into blocks of whole planes."""
    n, c, *sizes = shape
    planes = max(1, BLOCK_BYTES // max(1, math.prod(sizes) * itemsize))
    images, channels = max(1, planes // max(c, 1)), min(planes, max(c, 1))
    for i, j in itertools.product(range(0, n, images), range(0, c, channels)):
        yield slice(i, i + images), slice(j, j + channels)


def _by(sizes: Iterable[int]) -> str:
    return "x".join(map(str, sizes))
