"""Memory formats, contiguous (NCHW) or channels_last (NHWC), from shape and strides alone.

Shapes are always (N, C, *sizes).  In contiguous memory the last axis runs fastest, in channels_last
memory the channels do.  Kernels see three spatial axes; a missing one has size 1.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from convcore.engine.runtime import memory


@functools.lru_cache(maxsize=1024)
def is_channels_last(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Return whether an (N, C, *sizes) array is channels_last, as PyTorch would suggest.

    Walk C, then the sizes from the last to the first, then N: strides must not fall.  Where both
    formats fit (one channel, or one pixel and one image) the answer is contiguous.  With one
    spatial axis there is no such format.

    References
    ----------
    PyTorch, c10/core/MemoryFormat.h, `is_channels_last_strides_2d`.
    """
    if len(shape) < 4 or strides[1] == 0:
        return False
    least = 0
    for axis in (1, *range(len(shape) - 1, 1, -1), 0):
        if shape[axis] == 0 or strides[axis] < least:
            return False
        if axis == 0 and least == strides[1]:
            return False
        least = strides[axis] * max(shape[axis], 1)
    return True


def memory_order(rank: int) -> tuple[int, ...]:
    """Return the transposition from (N, *sizes, C) memory to (N, C, *sizes)."""
    return (0, rank + 1, *range(1, rank + 1))


class Layout(NamedTuple):
    """An (N, C, D, H, W) array: shape, and strides in elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def dense_rows(self) -> int | None:
        """Leading dimension of the array as a (pixels, channels) matrix in place, or None."""
        channels = self.shape[1]
        if channels > 1 and self.strides[1] != 1:
            return None
        step = _step(self.shape[:1] + self.shape[2:], self.strides[:1] + self.strides[2:])
        if step is None:
            return channels if self.shape[0] * math.prod(self.shape[2:]) == 1 else None
        return step if step >= channels else None

    @property
    def dense_columns(self) -> int | None:
        """Leading dimension of each image as a (channels, pixels) matrix in place, or None."""
        pixels = math.prod(self.shape[2:])
        if pixels != 1 and _step(self.shape[2:], self.strides[2:]) != 1:
            return None
        if self.shape[1] == 1:
            return pixels
        return self.strides[1] if self.strides[1] >= pixels else None


def _step(sizes: Sequence[int], strides: Sequence[int]) -> int | None:
    """Return the one stride at which the axes, flattened in order, can be walked, or None."""
    step = expected = None
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if size == 1:
            continue
        if step is None:
            step = stride
        elif stride != expected:
            return None
        expected = stride * size
    return step


class SplitElementsError(ValueError):
    """An array's strides are no whole elements, as those of a packed structured array's field."""


def layout(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> Layout:
    """Return the layout of an (N, C, *sizes) array, with leading 1s for missing sizes."""
    if any(s % itemsize for s in strides):
        raise SplitElementsError(f"strides {list(strides)} are not multiples of {itemsize} bytes")
    missing = 5 - len(shape)
    steps = [s // itemsize for s in strides]
    n, c, *sizes = shape
    return Layout(
        (n, c, *(1,) * missing, *sizes), (steps[0], steps[1], *(0,) * missing, *steps[2:])
    )


def dense(shape: Sequence[int], channels_last: bool) -> Layout:
    """Return the layout of a new (N, C, D, H, W) array in one of the two formats."""
    order = (0, 2, 3, 4, 1) if channels_last else (0, 1, 2, 3, 4)
    strides = [0] * 5
    step = 1
    for axis in reversed(order):
        strides[axis] = step
        step *= shape[axis]
    return Layout(tuple(shape), tuple(strides))


def is_dense(array: np.ndarray) -> bool:
    """Return whether the elements fill their memory in some order of the axes, aligned."""
    flags = array.flags
    return flags.aligned and (flags.forc or _fills(array.shape, array.strides, array.itemsize))


@functools.lru_cache(maxsize=256)
def _fills(shape: tuple[int, ...], strides: tuple[int, ...], step: int) -> bool:
    axes = zip(strides, shape, strict=True)
    for stride, size in sorted([axis for axis in axes if axis[1] != 1]):
        if stride != step:
            return False
        step *= size
    return True


def empty(shape: Sequence[int], dtype: np.dtype, channels_last: bool) -> np.ndarray:
    """Return a new array of logical shape (N, C, *sizes) in one of the two formats."""
    if not channels_last:
        return memory.empty(shape, dtype)
    array = memory.empty((shape[0], *shape[2:], shape[1]), dtype)
    return array.transpose(memory_order(len(shape) - 2))


def real_parts(array: np.ndarray) -> np.ndarray:
    """Return a view of a complex array with real and imaginary parts along a last axis."""
    part = array.real
    return np.lib.stride_tricks.as_strided(
        part, (*part.shape, 2), (*part.strides, part.itemsize), writeable=array.flags.writeable
    )
