"""Average pooling with long windows: sums of windows from sums of powers of two.

A window of k elements is cut into blocks whose lengths are the powers of two in k.  The sums of all
blocks of length 2^(b+1) are sums of pairs of length 2^b: O(size log k) additions, O(size) memory,
and rounding errors of at most 2 log2(k) + 2 additions.  A sum covers its own window only, so NaN
and infinities stay local; differences of running sums would spread them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from convcore.engine.geometry import Axis
from convcore.engine.layers.pooling.pooling import wide_enough
from convcore.engine.runtime import layout
from convcore.engine.runtime.checks import Array, check_memory
from convcore.engine.runtime.errstate import quiet


def window_sums(x: Array, first: int, stride: int, out: int, k: int) -> Array:
    """Compute the sums of windows of k elements along the last axis, padded with zeros.

    Window j is [first + j*stride, first + j*stride + k), j < out; first may be negative.
    """
    # Zeros at the start or end of every window cost nothing, however many there are.
    before = max(0, -first - (out - 1) * stride)
    first, k = first + before, k - before
    k -= max(0, first + k - x.shape[-1])
    length = (out - 1) * stride + k
    if k <= 0:
        return np.zeros((*x.shape[:-1], out), x.dtype)
    blocks = np.zeros((*x.shape[:-1], length), x.dtype)
    low, high = max(first, 0), min(first + length, x.shape[-1])
    if low < high:
        blocks[..., low - first : high - first] = x[..., low:high]
    sums = np.zeros((*x.shape[:-1], out), x.dtype)
    place, size = 0, 1
    while True:
        if k & size:
            sums += blocks[..., place : place + (out - 1) * stride + 1 : stride]
            place += size
        if 2 * size > k:
            return sums
        blocks = blocks[..., :-size] + blocks[..., size:]
        size *= 2


class LongWindows:
    """Map to means of windows at a stride, or its adjoint, for arrays of one dtype.

    Parameters
    ----------
    axes : sequence of Axis
    counts : sequence of array
        Divisors of each axis's sums, per output.
    divisor : float
        Additional divisor of all sums.
    dtype : dtype
    back : bool
        Whether to compute the adjoint.
    """

    table_bytes = 0

    def __init__(
        self,
        axes: Sequence[Axis],
        counts: Sequence[Array],
        divisor: float,
        dtype: np.dtype[Any],
        back: bool,
    ) -> None:
        self._axes, self._divisor, self._back = tuple(axes), divisor, back
        self._wide = wide_enough(dtype)
        self._counts = [each.astype(self._wide) for each in counts]
        self.outs = tuple(axis.size if back else axis.out for axis in axes)

    def __call__(self, batch: Array) -> Array:
        """Apply the map to (N, C, *sizes) or (C, *sizes); keep dtype and memory format."""
        if batch.ndim == len(self.outs) + 1:
            return self(batch[np.newaxis])[0]
        shape = (*batch.shape[:2], *self.outs)
        check_memory(shape, 8)
        last = layout.is_channels_last(batch.shape, batch.strides)
        y = layout.empty(shape, batch.dtype, last)
        y[...] = quiet(self._means, batch.astype(self._wide, copy=False))
        return y

    def _means(self, x: Array) -> Array:
        for number, (axis, counts) in enumerate(zip(self._axes, self._counts, strict=True), 2):
            along = self._along(np.moveaxis(x, number, -1), axis, counts)
            x = np.moveaxis(along, -1, number)
        return x / self._wide.type(self._divisor)

    def _along(self, x: Array, axis: Axis, counts: Array) -> Array:
        """Apply the map along the last axis."""
        if not self._back:
            return window_sums(x, -axis.before, axis.stride, axis.out, axis.kernel) / counts
        spread = np.zeros((*x.shape[:-1], (axis.out - 1) * axis.stride + 1), x.dtype)
        spread[..., :: axis.stride] = x / counts
        return window_sums(spread, axis.before - axis.kernel + 1, 1, axis.size, axis.kernel)
