"""What kernels that go over images line by line ask of arrays: dense, in one of the two formats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from convcore.engine.runtime import layout, memory
from convcore.engine.runtime.checks import Array, check_memory

FLOATS = (np.dtype("f4"), np.dtype("f8"))


def lines_of(batch: Array) -> tuple[Array, int, int]:
    """Return (dense array as it lies in memory, images, channels) of an (N, C, *sizes) array.

    Contiguous memory is so many planes of 0 channels.  What is in neither format, or not aligned,
    is copied.
    """
    if layout.is_channels_last(batch.shape, batch.strides):
        return (
            _dense(batch.transpose(0, *range(2, batch.ndim), 1)),
            batch.shape[0],
            batch.shape[1],
        )
    return _dense(batch), batch.shape[0] * batch.shape[1], 0


def _dense(array: Array) -> Array:
    flags = array.flags
    return array if flags.c_contiguous and flags.aligned else array.copy(order="C")


def as_format(batch: Array, channels_last: bool) -> Array:
    """Return the (N, C, *sizes) array as dense memory of one format, a copy if it is not that."""
    return _dense(batch.transpose(0, *range(2, batch.ndim), 1) if channels_last else batch)


def empty_lines(
    batch: Array, sizes: Sequence[int], dtype: np.dtype[Any], channels: int
) -> tuple[Array, Array]:
    """Return (new dense memory, the same as (N, C, *sizes)) in the format that `lines_of` told."""
    n, c = batch.shape[:2]
    check_memory((n, c, *sizes), 8)
    if not channels:
        result = memory.empty((n, c, *sizes), dtype)
        return result, result
    dense = memory.empty((n, *sizes, c), dtype)
    return dense, dense.transpose(layout.memory_order(len(sizes)))
