"""Pools of maxima in compiled loops: what wins is remembered by its tap, in a byte.

The indices that PyTorch gives are eight times as large, and are made of the taps where they are
asked for.  The gradient goes back by the taps.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from convcore.engine.geometry import Axis
from convcore.engine.layers.images import FLOATS, as_format, empty_lines, lines_of
from convcore.engine.layers.pooling import wide_enough
from convcore.engine.runtime import memory
from convcore.engine.runtime.checks import Array
from convcore.kernels.layers._max_pool import MOST_TAPS, MaximumPool

_BYTE = np.dtype(np.uint8)
_INDEX = np.dtype(np.int64)

# An axis of a pool: of windows at a stride, or (size, out) of windows that adapt.
PoolAxis = Axis | tuple[int, int]


class Pool(NamedTuple):
    """A pool's kernel, and the sizes of the planes that it reads and makes."""

    kernel: MaximumPool
    sizes: tuple[int, ...]
    outs: tuple[int, ...]


def pool_of(axes: Sequence[PoolAxis], dtype: np.dtype[Any]) -> Pool | None:
    """Return the pool of these axes; None where there are no kernels for it."""
    taps = math.prod(a.kernel if isinstance(a, Axis) else -(-a[0] // a[1]) + 1 for a in axes)
    return _pool(tuple(axes)) if dtype.kind == "f" and taps <= MOST_TAPS else None


def maxima(batch: Array, pool: Pool, with_taps: bool) -> tuple[Array, Array | None]:
    """Return the maxima of an (N, C, *sizes) array, and the taps they were found at if asked for.

    Both lie in memory as the array does.
    """
    wide = wide_enough(batch.dtype)
    x, images, channels = lines_of(batch.astype(wide, copy=False))
    memory_of_y, y = empty_lines(batch, pool.outs, wide, channels)
    memory_of_taps, taps = (
        empty_lines(batch, pool.outs, _BYTE, channels) if with_taps else (None, None)
    )
    if y.size:
        is_wide = wide == FLOATS[1]
        threads = pool.kernel.threads(images, channels, is_wide)
        scratch = memory.take(threads * pool.kernel.scratch_bytes(is_wide))
        pool.kernel.forward(
            x, memory_of_y, memory_of_taps, scratch, images, channels, is_wide, threads
        )
        memory.give(scratch)
    return y.astype(batch.dtype, copy=False), taps


def maxima_gradient(grad: Array, taps: Array, pool: Pool) -> Array:
    """Return the gradient of the array whose maxima were found at `taps`."""
    wide = wide_enough(grad.dtype)
    t, images, channels = lines_of(taps)
    gy = as_format(grad.astype(wide, copy=False), channels > 0)
    memory_of_gx, gx = empty_lines(grad, pool.sizes, wide, channels)
    if gx.size:
        is_wide = wide == FLOATS[1]
        threads = pool.kernel.threads(images, channels, is_wide)
        pool.kernel.gradient(gy, t, memory_of_gx, images, channels, is_wide, threads)
    return gx.astype(grad.dtype, copy=False)


def indices_of(taps: Array, pool: Pool) -> Array:
    """Return the int64 index in its plane of each maximum; -1 where a window saw no input."""
    t, images, channels = lines_of(taps)
    memory_of_indices, indices = empty_lines(taps, pool.outs, _INDEX, channels)
    if taps.size:
        threads = pool.kernel.threads(images, channels, False)
        pool.kernel.indices(t, memory_of_indices, images, channels, threads)
    return indices


@functools.lru_cache(maxsize=64)
def _pool(axes: tuple[PoolAxis, ...]) -> Pool:
    missing: list[PoolAxis] = [Axis(1, 1)] * (3 - len(axes))
    lines, tables = [], []
    for axis in (*missing, *axes):
        line, table = _regular(axis) if isinstance(axis, Axis) else _adaptive(*axis)
        lines.append(line)
        tables += table
    kernel = MaximumPool(lines, np.concatenate(tables).astype(np.intp))
    return Pool(
        kernel, tuple(line[0] for line in lines[-len(axes) :]),
        tuple(line[1] for line in lines[-len(axes) :]),
    )  # fmt: skip


def _regular(a: Axis) -> tuple[tuple[int, ...], list[Array]]:
    """Return the numbers and tables of windows at a stride, as layers/pooling.h has them."""
    start = np.arange(a.out) * a.stride - a.before
    low = np.clip(-(start // a.dilation), 0, a.kernel)
    high = np.clip(-((start - a.size) // a.dilation), 0, a.kernel)
    last = start + (a.kernel - 1) * a.dilation
    # Staged lines are as long as what windows cover, which dilation and padding can make endless.
    staged = a.stride * (a.out + 2) + a.kernel * a.dilation
    stride = a.stride if staged <= 4 * a.size + 64 else 0
    line = (a.size, a.out, a.kernel, a.dilation, stride, a.before)
    return line, [start, low, high, *_seen(a.size, start, last)]


def _adaptive(size: int, out: int) -> tuple[tuple[int, ...], list[Array]]:
    """Return the same of windows that cut ``size`` into ``out`` parts."""
    if size % out == 0:
        return _regular(Axis(size, size // out, size // out))
    start = np.arange(out) * size // out
    end = -(-(np.arange(out) + 1) * size // out)
    count = end - start
    line = (size, out, int(count.max()), 1, 0, 0)
    return line, [start, np.zeros(out, np.intp), count, *_seen(size, start, end - 1)]


def _seen(size: int, first: Array, last: Array) -> tuple[Array, Array]:
    """Return the range of windows, from their first and last elements, that see each input."""
    inputs = np.arange(size)
    return np.searchsorted(last, inputs, "left"), np.searchsorted(first, inputs, "right")
