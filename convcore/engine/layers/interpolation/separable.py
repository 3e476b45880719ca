"""Separable linear maps of images, with weights along each axis, in compiled loops.

Average pooling is such a map: along each axis an output is the sum of its window.  So are
interpolation (weighted sums) and padding with the image's own elements.  The adjoint of each is
another such map.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from convcore.engine.layers import images
from convcore.engine.layers.interpolation._separable import SeparableKernel
from convcore.engine.layers.pooling.pooling import wide_enough
from convcore.engine.runtime import memory
from convcore.engine.runtime.checks import Array

Map = Callable[[Array], Array]

# Repeating taps are searched for in groups of at most this many outputs, and used if there are at
# least that many groups.
_MOST_PHASES = 4
_LEAST_REPEATS = 8


class AxisWeights(NamedTuple):
    """One axis's weights, a sparse matrix by rows: output j sums taps [begin[j], begin[j + 1]).

    Tap i is input source[i] times weight[i].  The sum is divided by divisor[j], if there are any.
    """

    size: int
    out: int
    begin: Array
    source: Array
    weight: Array
    divisor: Array | None = None

    def adjoint(self) -> AxisWeights:
        """Return the weights of the adjoint map, ignoring divisors."""
        order = np.argsort(self.source, kind="stable")
        outputs = np.repeat(np.arange(self.out), np.diff(self.begin))
        begin = np.searchsorted(self.source[order], np.arange(self.size + 1))
        return AxisWeights(self.out, self.size, begin, outputs[order], self.weight[order])


def identity(size: int) -> AxisWeights:
    """Return the weights of the identity map of an axis."""
    places = np.arange(size + 1)
    return AxisWeights(size, size, places, places[:-1], np.ones(size))


def window_weights(size: int, start: Array, end: Array) -> AxisWeights:
    """Return the weights of the sums of inputs [start[j], end[j])."""
    counts = np.maximum(end - start, 0)
    begin = np.concatenate([[0], np.cumsum(counts)])
    source = np.arange(begin[-1]) - np.repeat(begin[:-1] - start, counts)
    return AxisWeights(size, len(start), begin, source, np.ones(len(source)))


class SeparableMap:
    """A map with weights along one to three axes, for arrays of one dtype."""

    def __init__(
        self, axes: Sequence[AxisWeights], dtype: np.dtype[Any], divisor: float = 1.0
    ) -> None:
        self.outs = tuple(t.out for t in axes)
        self.wide = wide_enough(dtype)
        rows, places, numbers = [], [], []
        for t in (*[identity(1)] * (3 - len(axes)), *axes):
            weight = t.weight.astype(self.wide)
            copies = bool((weight == 1).all()) and np.array_equal(t.begin, np.arange(t.out + 1))
            is_identity = copies and np.array_equal(t.source, np.arange(t.size))
            repeats, reaches = _repeats(t), None
            if not repeats[0]:
                reaches = _gather_table(t)
            two_tap = bool(np.diff(t.begin).max(initial=0) <= 2)
            rows.append(
                (t.size, t.out, len(t.source), *repeats, _are_runs(t), is_identity, copies,
                 two_tap, reaches is not None, t.divisor is not None)
            )  # fmt: skip
            places += [t.begin, t.source] if reaches is None else [t.begin, t.source, reaches]
            numbers += [weight] if t.divisor is None else [weight, t.divisor.astype(self.wide)]
        tables = np.concatenate(places).astype(np.intp), np.concatenate(numbers)
        self.kernel = SeparableKernel(rows, *tables, divisor)
        self.table_bytes = sum(table.nbytes for table in tables)

    def __call__(self, batch: Array) -> Array:
        """Apply the map to (N, C, *sizes) or (C, *sizes); keep dtype and memory format."""
        if batch.ndim == len(self.outs) + 1:
            return self(batch[np.newaxis])[0]
        x, n, channels = images.dense(batch.astype(self.wide, copy=False))
        dense_y, y = images.empty(batch, self.outs, self.wide, channels)
        self.run(x, dense_y, n, channels)
        return y.astype(batch.dtype, copy=False)

    def run(self, x: Array, y: Array, n: int, channels: int) -> None:
        """Apply the map to x and write y; both are dense: see `images.dense`."""
        if not y.size:
            return
        threads = self.kernel.threads(n, channels)
        scratch = memory.take(threads * self.kernel.scratch_bytes(channels))
        self.kernel.run(x, y, scratch, n, channels, threads)
        memory.give(scratch)


def _are_runs(t: AxisWeights) -> bool:
    """Return whether each output sums adjacent inputs with weight 1."""
    inside = np.ones(max(len(t.source) - 1, 0), bool)
    ends = t.begin[1:-1]
    inside[ends[(ends > 0) & (ends < len(t.source))] - 1] = False
    return bool((t.weight == 1).all() and (np.diff(t.source)[inside] == 1).all())


def _gather_table(t: AxisWeights) -> Array | None:
    """Return (first output, end, a tap) of each input, flat, if that is faster, else None.

    It is faster if every input is added, with one weight, to many adjacent outputs, as in the
    adjoint of a sum over few long windows.
    """
    if t.out < 4 * t.size or not len(t.source):
        return None
    back = t.adjoint()
    first, end = back.begin[:-1], back.begin[1:]
    if (first == end).any() or not _are_runs(back._replace(weight=np.ones(len(back.source)))):
        return None
    order = np.argsort(t.source, kind="stable")
    if (back.weight != np.repeat(back.weight[first], end - first)).any():
        return None
    return np.stack([back.source[first], back.source[end - 1] + 1, order[first]], axis=1).ravel()


def _repeats(t: AxisWeights) -> tuple[int, int, int, int]:
    """Return (phases, stride, low, high) of repeating taps, as in layers/pooling.h; zeros if none.

    Groups of `phases` outputs are compared to the middle group: same number of taps, same weights,
    and inputs shifted by `stride` per group.
    """
    counts = np.diff(t.begin)
    for phases in range(1, _MOST_PHASES + 1):
        groups = t.out // phases
        if groups < _LEAST_REPEATS:
            break
        middle = groups // 2
        found = _alike(t, counts[: groups * phases].reshape(groups, phases), middle)
        if found is not None:
            stride, alike = found
            different = np.flatnonzero(~alike)
            low = int(max(different[different < middle], default=-1)) + 1
            high = int(min(different[different > middle], default=groups))
            if high - low >= max(_LEAST_REPEATS, groups // 2):
                return phases, stride, low, high
    return 0, 0, 0, 0


def _alike(t: AxisWeights, counts: Array, middle: int) -> tuple[int, Array] | None:
    """Return (input shift per group, whether each group has the taps of the middle one)."""
    groups, phases = counts.shape
    first, n_taps = t.begin[: groups * phases : phases], int(counts[middle].sum())
    stride = 0
    if n_taps and first[middle + 1] < len(t.source):
        stride = int(t.source[first[middle + 1]] - t.source[first[middle]])
    if n_taps == 0 or not 1 <= stride <= 8 or groups * n_taps > 1 << 22:
        return None
    taps = np.minimum(first[:, np.newaxis] + np.arange(n_taps), len(t.source) - 1)
    shifts = (np.arange(groups) - middle) * stride
    alike = (counts == counts[middle]).all(axis=1)
    alike &= (t.source[taps] - shifts[:, np.newaxis] == t.source[taps[middle]]).all(axis=1)
    alike &= (t.weight[taps] == t.weight[taps[middle]]).all(axis=1)
    return stride, alike
