"""Strided copies on all threads: an array into a larger one (pad, cat), or a part out of it.

What is small, or has gaps along the axis that runs fastest, NumPy copies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from convcore.engine.layers import _strided_copy

Array = np.ndarray[Any, Any]

# Copies of fewer bytes are NumPy's, whose cat of two is then up to 2.5 times as fast; from here on
# it takes up to 1.4 times as long, save for cat of NCHW: benchmarks/sweep.py --threads 1
# --constant engine.layers.strided_copy.LEAST_BYTES --values 131072,2097152
LEAST_BYTES = 1 << 20
_MOST_AXES = 8


def put(target: Array, source: Array, before: Sequence[int], value: Array | None = None) -> bool:
    """Write target[j] = source[j - before] where that is within source, else the value.

    Parameters
    ----------
    target, source : arrays of one dtype and number of axes, that do not overlap
    before : one int an axis
        How far source begins after target; before it where negative.
    value : array of one element of that dtype; zero if not given

    Returns
    -------
    bool
        False, and nothing is written, if this is not for these kernels.
    """
    if target.nbytes < LEAST_BYTES or target.dtype.hasobject or target.dtype != source.dtype:
        return False
    axes = _axes(target, source, before)
    if axes is None or len(axes) > _MOST_AXES:
        return False
    zero = bytes(target.itemsize)
    _strided_copy.put([(source, target, axes)], zero if value is None else value.tobytes())
    return True


def concatenate(parts: Sequence[Array], axis: int, out: Array) -> None:
    """Write the parts one after the other along an axis of ``out``."""
    start, places = 0, []
    for part in parts:
        end = start + part.shape[axis]
        places.append(out[(slice(None),) * axis + (slice(start, end),)])
        start = end
    if _put_together(places, parts):
        return
    for place, part in zip(places, parts, strict=True):
        if not put(place, part, (0,) * out.ndim):
            np.copyto(place, part, casting="unsafe")


def _put_together(targets: Sequence[Array], sources: Sequence[Array]) -> bool:
    """Write two or three targets whose rows interleave in memory, row by row."""
    if not 2 <= len(targets) <= 3 or targets[0].dtype.hasobject:
        return False
    jobs: list[tuple[Array, Array, list[tuple[int, ...]]]] = []
    for target, source in zip(targets, sources, strict=True):
        axes = None
        if source.dtype == target.dtype and source.size:
            axes = _axes(target, source, (0,) * target.ndim)
        if axes is None or len(axes) > _MOST_AXES or (jobs and _rows(axes) != _rows(jobs[0][2])):
            return False
        jobs.append((source, target, axes))
    _strided_copy.put(jobs, bytes(targets[0].itemsize))
    return True


def _rows(axes: Sequence[tuple[int, ...]]) -> int:
    return math.prod(axis[0] for axis in axes[:-1])


def _axes(target: Array, source: Array, before: Sequence[int]) -> list[tuple[int, ...]] | None:
    """Return the axes as the kernel takes them, joined where both arrays run on; None if it cannot.

    The order is that of target's memory.
    """
    order = sorted(range(target.ndim), key=lambda axis: -target.strides[axis])
    joined: list[tuple[int, ...]] = [(1, 1, 0, source.itemsize, source.itemsize)]
    for axis in reversed(order):
        outer = (
            *(target.shape[axis], source.shape[axis], before[axis]),
            *(source.strides[axis], target.strides[axis]),
        )
        if outer[:3] == (1, 1, 0):
            continue
        size, inner, shift, x_step, y_step = joined[-1]
        if shift == 0 and size == inner and outer[3:] == (x_step * size, y_step * size):
            joined[-1] = (outer[0] * size, outer[1] * size, outer[2] * size, x_step, y_step)
        else:
            joined.append(outer)
    size, inner, shift, x_step, y_step = joined[0]
    if not x_step == y_step == source.itemsize:
        return None
    joined[0] = (size * x_step, inner * x_step, shift * x_step, 1, 1)
    return joined[::-1] if len(joined) > 1 else [(1, 1, 0, 0, 0), joined[0]]
