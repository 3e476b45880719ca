"""Image batches in the kernels' layouts: dense NCHW or NHWC memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from convcore.engine.runtime import layout, memory
from convcore.engine.runtime.checks import Array, check_memory

FLOATS = (np.dtype("f4"), np.dtype("f8"))


def dense(batch: Array) -> tuple[Array, int, int]:
    """Return (array in memory order, images, channels) of an (N, C, *sizes) array.

    For NCHW: the number of planes, and 0 channels.  Arrays in neither format are copied.
    """
    if layout.is_channels_last(batch.shape, batch.strides):
        return as_format(batch, True), batch.shape[0], batch.shape[1]
    return as_format(batch, False), batch.shape[0] * batch.shape[1], 0


def as_format(batch: Array, channels_last: bool) -> Array:
    """Return the (N, C, *sizes) array as dense memory of a given format; copy if necessary."""
    array = batch.transpose(0, *range(2, batch.ndim), 1) if channels_last else batch
    flags = array.flags
    return array if flags.c_contiguous and flags.aligned else array.copy(order="C")


def empty(
    batch: Array, sizes: Sequence[int], dtype: np.dtype[Any], channels: int
) -> tuple[Array, Array]:
    """Return (new dense memory, its view as (N, C, *sizes)) in the format that `dense` returned."""
    n, c = batch.shape[:2]
    check_memory((n, c, *sizes), 8)
    if not channels:
        result = memory.empty((n, c, *sizes), dtype)
        return result, result
    nhwc = memory.empty((n, *sizes, c), dtype)
    return nhwc, nhwc.transpose(layout.memory_order(len(sizes)))
