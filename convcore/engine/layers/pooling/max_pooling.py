"""Max pooling: the largest element under each window, its index, and the gradient.

Compiled loops handle floats and windows of at most 255 taps; they save each maximum's tap in its
window, one byte.  PyTorch's indices are eight times as large and are computed from the taps on
demand; the gradient uses the taps.  NumPy (max_pooling_numpy.py) handles all other cases.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from convcore.engine.geometry import Axis, Spatial
from convcore.engine.layers import images
from convcore.engine.layers.pooling._max_pool import MOST_TAPS, MaxPoolKernel
from convcore.engine.layers.pooling.max_pooling_numpy import (
    adaptive_max_pool_by_numpy,
    max_pool_by_numpy,
)
from convcore.engine.layers.pooling.pooling import (
    FLOATS,
    INTEGERS,
    as_batch,
    check_adaptive,
    check_planes,
    checked_flag,
    empty_results,
    output_sizes,
    wide_enough,
)
from convcore.engine.layers.windows import pool_axes
from convcore.engine.runtime import memory
from convcore.engine.runtime.checks import Array
from convcore.engine.runtime.tables import MOST_BYTES, kept_tables

_BYTE = np.dtype(np.uint8)
_INDEX = np.dtype(np.int64)

# Multiply-adds that take as long as one tap.  With 4, calls of 60,000 to 250,000 taps take up to
# 1.6 times as long, because they use one thread; with 8 those of up to 125,000, up to 1.4 times:
# benchmarks/sweep.py --busy --threads 2 --constant engine.layers.pooling.max_pooling._TAP_WORK
# --values 4,8
_TAP_WORK = 16.0

# Minimum windows of one piece of a long axis.
_PIECE = 1 << 16

# An axis of a pool: windows at a stride, or (size, out) of adaptive windows.
PoolAxis = Axis | tuple[int, int]


def max_pool(
    input: Array,
    kernel_size: Spatial,
    stride: Spatial | None = None,
    padding: Spatial = 0,
    dilation: Spatial = 1,
    ceil_mode: bool = False,
) -> tuple[Array, Array]:
    """Return the largest element under every window, and its index.

    values[n, c, j] = max over t of input[n, c, j*stride - padding + t*dilation], where padding is
    -inf.  On ties the first element wins.  NaN is larger than all, and the last NaN wins.

    Parameters
    ----------
    input : (N, C, *sizes) or (C, *sizes); float16, float32, float64 or integers
        One to three spatial axes; any strides.  N may be 0.
    kernel_size : int, or one int per spatial axis
        An int with an array of three axes means a batch with one spatial axis.
    stride : int, or one int per spatial axis
        kernel_size by default.
    padding : int, or one int per spatial axis
        On both sides, at most half of the kernel's extent.
    dilation : int, or one int per spatial axis
    ceil_mode : bool
        Add a window where the last stride leaves elements uncovered, even if it extends beyond the
        padding.

    Returns
    -------
    values : (N, C, *outs) or (C, *outs), of the input's dtype
    indices : the same shape, int64
        The index of each value in its flattened plane.  -1 where a dilated window covers only
        padding; the value is then -inf, or the lowest integer.
        Both are channels_last if the input is, else contiguous.

    Raises
    ------
    TypeError, ValueError
        The message names the argument, its value and what is allowed.

    Notes
    -----
    Reads taps * P elements per plane; besides the results, a few megabytes of scratch memory.

    References
    ----------
    D. Scherer, A. Mueller, S. Behnke, Evaluation of pooling operations in convolutional
    architectures for object recognition (2010), section 3.

    Examples
    --------
    >>> import numpy as np
    >>> values, indices = max_pool(np.arange(16.0).reshape(1, 4, 4), (2, 2))
    >>> values.tolist(), indices.tolist()
    ([[[5.0, 7.0], [13.0, 15.0]]], [[[5, 7], [13, 15]]])
    """
    batch, unbatched, axes = _checked_pool(input, kernel_size, stride, padding, dilation, ceil_mode)
    pool = _pool_of(axes, batch.dtype)
    found = max_pool_by_numpy(batch, axes) if pool is None else pool.with_indices(batch)
    return (found[0][0], found[1][0]) if unbatched else found


def adaptive_max_pool(input: Array, output_size: Spatial) -> tuple[Array, Array]:
    """Return the largest element of each of ``output_size`` windows per axis, and its index.

    Window i of an axis is [floor(i*size/out), ceil((i+1)*size/out)).

    Parameters
    ----------
    input : as for `max_pool`, floating
    output_size : int, or one int per spatial axis
        Like kernel_size of `max_pool`; may be 0.

    Returns
    -------
    values, indices
        As `max_pool`.

    Raises
    ------
    TypeError, ValueError
        As `max_pool`.

    References
    ----------
    K. He, X. Zhang, S. Ren, J. Sun, Spatial pyramid pooling in deep convolutional networks for
    visual recognition (2014), section 2.2.

    Examples
    --------
    >>> import numpy as np
    >>> adaptive_max_pool(np.array([[3.0, 1.0, 2.0]]), (2,))
    (array([[3., 2.]]), array([[0, 2]]))
    """
    batch, unbatched, outs = _checked_adaptive(input, output_size)
    if batch.size and 0 not in outs and (pool := _adaptive_pool_of(batch, outs)) is not None:
        found = pool.with_indices(batch)
    else:
        found = adaptive_max_pool_by_numpy(batch, outs)
    return (found[0][0], found[1][0]) if unbatched else found


def max_pool_of(input: Array, *steps: Any) -> MaxPool | LongMaxPool | None:
    """Return the compiled pool for `max_pool` with the same arguments; None if unsupported."""
    batch, _, axes = _checked_pool(input, *steps)
    return _pool_of(axes, batch.dtype)


def adaptive_max_pool_of(input: Array, outs: tuple[int, ...]) -> MaxPool | LongMaxPool | None:
    """Return the compiled pool for `adaptive_max_pool`; None if unsupported."""
    if 0 in outs or not input.size:
        return None
    batch, _, outs = _checked_adaptive(input, outs)
    return _adaptive_pool_of(batch, outs)


class MaxPool(NamedTuple):
    """Compiled max pooling of images of given sizes: (N, C, *sizes) or (C, *sizes)."""

    kernel: MaxPoolKernel
    sizes: tuple[int, ...]
    outs: tuple[int, ...]
    table_bytes: int

    def forward(self, input: Array, with_taps: bool) -> tuple[Array, Array | None]:
        """Return the maxima, and their taps if requested, in the array's memory format."""
        if input.ndim == len(self.sizes) + 1:
            values, taps = self.forward(input[np.newaxis], with_taps)
            return values[0], None if taps is None else taps[0]
        wide = wide_enough(input.dtype)
        x, n, channels = images.dense(input.astype(wide, copy=False))
        dense_y, y = images.empty(input, self.outs, wide, channels)
        dense_taps = taps = None
        if with_taps:
            dense_taps, taps = images.empty(input, self.outs, _BYTE, channels)
        if y.size:
            is_wide = wide == images.FLOATS[1]
            threads = self.kernel.threads(n, channels, is_wide)
            scratch = memory.take(threads * self.kernel.scratch_bytes(is_wide))
            self.kernel.forward(x, dense_y, dense_taps, scratch, n, channels, is_wide, threads)
            memory.give(scratch)
        return y.astype(input.dtype, copy=False), taps

    def with_indices(self, batch: Array) -> tuple[Array, Array]:
        """Return the maxima of an (N, C, *sizes) array and their indices."""
        values, taps = self.forward(batch, True)
        assert taps is not None
        return values, self.indices(taps)

    def gradient(self, grad: Array, taps: Array) -> Array:
        """Compute the gradient of the input from the taps of the maxima."""
        if grad.ndim == len(self.sizes) + 1:
            return self.gradient(grad[np.newaxis], taps[np.newaxis])[0]
        wide = wide_enough(grad.dtype)
        t, n, channels = images.dense(taps)
        gy = images.as_format(grad.astype(wide, copy=False), channels > 0)
        dense_gx, gx = images.empty(grad, self.sizes, wide, channels)
        if gx.size:
            is_wide = wide == images.FLOATS[1]
            threads = self.kernel.threads(n, channels, is_wide)
            self.kernel.gradient(gy, t, dense_gx, n, channels, is_wide, threads)
        return gx.astype(grad.dtype, copy=False)

    def indices(self, taps: Array) -> Array:
        """Return the int64 index of each maximum in its plane; -1 for a window without inputs."""
        if taps.ndim == len(self.sizes) + 1:
            return self.indices(taps[np.newaxis])[0]
        t, n, channels = images.dense(taps)
        dense_indices, indices = images.empty(taps, self.outs, _INDEX, channels)
        if taps.size:
            threads = self.kernel.threads(n, channels, False)
            self.kernel.indices(t, dense_indices, n, channels, threads)
        return indices


class LongMaxPool(NamedTuple):
    """Max pooling along a long axis in pieces, each with a small `MaxPool`.

    Tables for the whole axis would take up to 40 bytes per element.  Inner pieces share tables.
    """

    axes: tuple[Axis, ...]
    position: int  # index of the long axis among the spatial axes

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return the sizes of the images, like `MaxPool.sizes`."""
        return tuple(a.size for a in self.axes)

    def forward(self, input: Array, with_taps: bool) -> tuple[Array, Array | None]:
        """Return the maxima, and their taps if requested, in the array's memory format."""
        if input.ndim == len(self.axes) + 1:
            values, taps = self.forward(input[np.newaxis], with_taps)
            return values[0], None if taps is None else taps[0]
        values, taps = empty_results(input, output_sizes(self.axes), input.dtype, _BYTE)
        for piece in self._pieces():
            values[piece.windows], piece_taps = piece.pool.forward(input[piece.inputs], with_taps)
            if piece_taps is not None:
                taps[piece.windows] = piece_taps
        return values, taps if with_taps else None

    def with_indices(self, batch: Array) -> tuple[Array, Array]:
        """Return the maxima of an (N, C, *sizes) array and their indices."""
        values, taps = self.forward(batch, True)
        assert taps is not None
        return values, self.indices(taps)

    def gradient(self, grad: Array, taps: Array) -> Array:
        """Compute the gradient of the input from the taps of the maxima."""
        if grad.ndim == len(self.axes) + 1:
            return self.gradient(grad[np.newaxis], taps[np.newaxis])[0]
        (sums,) = empty_results(grad, self.sizes, wide_enough(grad.dtype))
        sums[...] = 0
        for piece in self._pieces():
            # Windows of adjacent pieces overlap.
            gy = grad[piece.windows].astype(sums.dtype, copy=False)
            sums[piece.inputs] += piece.pool.gradient(gy, taps[piece.windows])
        return sums.astype(grad.dtype, copy=False)

    def indices(self, taps: Array) -> Array:
        """Return the int64 index of each maximum in its plane; -1 for a window without inputs."""
        if taps.ndim == len(self.axes) + 1:
            return self.indices(taps[np.newaxis])[0]
        (indices,) = empty_results(taps, taps.shape[2:], _INDEX)
        sizes = self.sizes
        inner = math.prod(sizes[self.position + 1 :])
        for piece in self._pieces():
            found = piece.pool.indices(taps[piece.windows])
            outer, rest = np.divmod(found, piece.pool.sizes[self.position] * inner)
            shifted = (outer * sizes[self.position] + piece.first) * inner + rest
            indices[piece.windows] = np.where(found < 0, -1, shifted)
        return indices

    def _pieces(self) -> Iterator[_Piece]:
        a = self.axes[self.position]
        # Pieces at least as long as a window: neighbours share at most half of their inputs.
        length = max(_PIECE, a.extent // a.stride)
        for begin in range(0, a.out, length):
            end = min(begin + length, a.out)
            start = begin * a.stride - a.before
            stop = (end - 1) * a.stride - a.before + a.extent
            low, high = max(start, 0), min(stop, a.size)
            piece = Axis(high - low, a.kernel, a.stride, a.dilation, low - start, stop - high)
            axes = (*self.axes[: self.position], piece, *self.axes[self.position + 1 :])
            others = (slice(None),) * (self.position + 2)
            yield _Piece(
                _pool(axes), (*others, slice(begin, end)), (*others, slice(low, high)), low
            )


class _Piece(NamedTuple):
    """A range of windows of a `LongMaxPool`, and the inputs that they cover."""

    pool: MaxPool
    windows: tuple[slice, ...]
    inputs: tuple[slice, ...]
    first: int  # the first input, along the long axis


def _checked_pool(
    input: Any,
    kernel_size: Spatial,
    stride: Spatial | None = None,
    padding: Spatial = 0,
    dilation: Spatial = 1,
    ceil_mode: bool = False,
) -> tuple[Array, bool, tuple[Axis, ...]]:
    """Return (batched input, whether it was unbatched, the pool's axes)."""
    batch, unbatched, kernel = as_batch(
        "input", input, "kernel_size", kernel_size, (*FLOATS, *INTEGERS)
    )
    check_planes(batch, unbatched)
    ceil = checked_flag("ceil_mode", ceil_mode)
    axes = pool_axes(batch.shape[1], batch.shape[2:], kernel, stride, padding, dilation, ceil)
    return batch, unbatched, axes


def _checked_adaptive(input: Any, output_size: Spatial) -> tuple[Array, bool, tuple[int, ...]]:
    """Return (batched input, whether it was unbatched, the output sizes)."""
    batch, unbatched, outs = as_batch("input", input, "output_size", output_size, FLOATS)
    check_adaptive(batch, unbatched, outs)
    return batch, unbatched, outs


def _adaptive_pool_of(batch: Array, outs: Sequence[int]) -> MaxPool | LongMaxPool | None:
    return _pool_of(tuple(zip(batch.shape[2:], outs, strict=True)), batch.dtype)


def _pool_of(axes: tuple[PoolAxis, ...], dtype: np.dtype[Any]) -> MaxPool | LongMaxPool | None:
    """Return the compiled pool for these axes; None if unsupported."""
    taps = math.prod(a.kernel if isinstance(a, Axis) else -(-a[0] // a[1]) + 1 for a in axes)
    if dtype.kind != "f" or taps > MOST_TAPS:
        return None
    regular = [a for a in axes if isinstance(a, Axis)]
    longest = max(range(len(axes)), key=lambda position: axes[position][0])
    if len(regular) == len(axes) and _table_bytes(regular[longest]) > MOST_BYTES:
        return LongMaxPool(tuple(regular), longest)
    return _pool(axes)


def _table_bytes(a: Axis) -> int:
    """Return the bytes of the tables of `_regular`."""
    return np.dtype(np.intp).itemsize * (3 * a.out + 2 * a.size)


@kept_tables
def _pool(axes: tuple[PoolAxis, ...]) -> MaxPool:
    missing: list[PoolAxis] = [Axis(1, 1)] * (3 - len(axes))
    rows, tables = [], []
    for axis in (*missing, *axes):
        row, table = _regular(axis) if isinstance(axis, Axis) else _adaptive(*axis)
        rows.append(row)
        tables += table
    joined = np.concatenate(tables).astype(np.intp)
    sizes, outs = zip(*(row[:2] for row in rows[-len(axes) :]), strict=True)
    return MaxPool(MaxPoolKernel(rows, joined, _TAP_WORK), sizes, outs, joined.nbytes)


def _regular(a: Axis) -> tuple[tuple[int, ...], list[Array]]:
    """Return sizes and tables of windows at a stride, as in layers/pooling.h."""
    start = np.arange(a.out) * a.stride - a.before
    low = np.clip(-(start // a.dilation), 0, a.kernel)
    high = np.clip(-((start - a.size) // a.dilation), 0, a.kernel)
    last = start + (a.kernel - 1) * a.dilation
    # Padded lines are as long as what windows cover, which dilation and padding can make endless.
    padded = a.stride * (a.out + 2) + a.kernel * a.dilation
    stride = a.stride if padded <= 4 * a.size + 64 else 0
    row = (a.size, a.out, a.kernel, a.dilation, stride, a.before)
    return row, [start, low, high, *_seen(a.size, start, last)]


def _adaptive(size: int, out: int) -> tuple[tuple[int, ...], list[Array]]:
    """Return sizes and tables of ``out`` windows that partition ``size``."""
    if size % out == 0:
        return _regular(Axis(size, size // out, size // out))
    start = np.arange(out) * size // out
    end = -(-(np.arange(out) + 1) * size // out)
    count = end - start
    row = (size, out, int(count.max()), 1, 0, 0)
    return row, [start, np.zeros(out, np.intp), count, *_seen(size, start, end - 1)]


def _seen(size: int, first: Array, last: Array) -> tuple[Array, Array]:
    """Return the range of windows that read each input, from their first and last elements."""
    inputs = np.arange(size)
    return np.searchsorted(last, inputs, "left"), np.searchsorted(first, inputs, "right")
