"""Max pooling by NumPy: integers, and windows of more taps than a byte can number.

Small windows are walked tap by tap, each tap a strided slice of the input that is as large as the
output; windows that are larger than the output, or differ in length, one by one.  The
others are compiled: see max_pooling.py.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from convcore.engine.geometry import Axis
from convcore.engine.layers.pooling import (
    empty_results,
    output_sizes,
    wide_enough,
)
from convcore.engine.layers.windows import (
    Move,
    adaptive_windows,
    blocks,
    clipped_windows,
    first_taps,
    tap_moves,
    window_moves,
)
from convcore.engine.runtime.checks import Array
from convcore.engine.runtime.tables import kept_tables

_INDEX = np.dtype(np.int64)


def max_pool_by_numpy(batch: Array, axes: tuple[Axis, ...]) -> tuple[Array, Array]:
    """Return the maxima of an (N, C, *sizes) array under windows at a stride, and their indices."""
    outs = output_sizes(axes)
    values, indices = empty_results(batch, outs, batch.dtype, _INDEX)
    if math.prod(outs) < math.prod(a.kernel for a in axes):
        _by_blocks(_by_window, batch, lambda: list(map(clipped_windows, axes)), values, indices)
    else:
        _by_blocks(_by_tap, batch, lambda: _tap_table(axes), values, indices)
    return values, indices


def adaptive_max_pool_by_numpy(batch: Array, outs: tuple[int, ...]) -> tuple[Array, Array]:
    """Return what `max_pool_by_numpy` does, under windows that cut each axis into parts."""
    values, indices = empty_results(batch, outs, batch.dtype, _INDEX)
    sizes = batch.shape[2:]
    _by_blocks(_by_window, batch, lambda: list(map(adaptive_windows, sizes, outs)), values, indices)
    return values, indices


def _by_blocks(
    write: Callable[..., None],
    x: Array,
    windows: Callable[[], Any],
    values: Array,
    indices: Array,
) -> None:
    """Write the maxima and their indices block by block, if there are any."""
    if values.size:
        made = windows()
        for block in blocks(x.shape, x.itemsize):
            write(x[block], made, values[block], indices[block])


def _by_tap(x: Array, table: _TapTable, values: Array, indices: Array) -> None:
    """Write the maxima and their indices of one block, tap by tap.

    Taps come in order and only a larger element replaces an earlier one.  The numbers of the taps
    that did so only grow, so that a product and a maximum of small integers keep the last.
    """
    best = np.empty_like(values, wide_enough(x.dtype))
    best.fill(-np.inf if best.dtype.kind == "f" else np.iinfo(best.dtype).min)
    winners = np.empty_like(values, table.firsts.dtype)
    winners[...] = table.firsts
    larger, numbers = np.empty_like(values, bool), np.empty_like(winners)
    for number, (into, come) in enumerate(table.taps):
        candidates = x[come].astype(best.dtype, copy=False)
        np.greater(candidates, best[into], out=larger[into])
        np.maximum(candidates, best[into], out=best[into])
        np.multiply(larger[into].view(np.uint8), winners.dtype.type(number), out=numbers[into])
        np.maximum(winners[into], numbers[into], out=winners[into])
    if best.dtype.kind == "f" and np.isnan(best).any():
        for number, (into, come) in enumerate(table.taps):
            np.copyto(winners[into], winners.dtype.type(number), where=np.isnan(x[come]))
    values[...] = best
    np.add(table.offsets[winners], table.origins, out=indices)
    if table.nowhere is not None:
        indices[..., table.nowhere] = -1


class _TapTable(NamedTuple):
    """What the taps of a kernel read and write, and how a winning tap becomes a pixel number."""

    taps: list[tuple[Any, Any]]  # for each tap, the windows that it serves and what it reads
    firsts: Array  # (*outs): the first tap of each window that meets the input
    nowhere: Array | None  # (*outs): where there is no such tap; None if there is everywhere
    origins: Array  # (*outs): the pixel number of each window's first tap, padding counted too
    offsets: Array  # (taps,): what each tap adds to that

    @property
    def table_bytes(self) -> int:
        """How large the tables are, with half a kilobyte for the slices of each tap."""
        tables = (self.firsts, self.nowhere, self.origins, self.offsets)
        of_taps = len(self.taps) << 9
        return of_taps + sum(table.nbytes for table in tables if table is not None)


@kept_tables
def _tap_table(axes: tuple[Axis, ...]) -> _TapTable:
    taps = [_slices(moves) for moves in itertools.product(*map(tap_moves, axes))]
    firsts, nowhere = np.zeros((), np.int64), np.zeros((), bool)
    origins, offsets = np.zeros((), np.int64), np.zeros((), np.int64)
    for a in axes:
        starts = np.arange(a.out) * a.stride - a.before
        first = first_taps(a)
        outside = starts + first * a.dilation >= a.size
        firsts = firsts[..., np.newaxis] * a.kernel + np.where(outside, 0, first)
        nowhere = nowhere[..., np.newaxis] | outside
        origins = origins[..., np.newaxis] * a.size + starts
        offsets = offsets[..., np.newaxis] * a.size + np.arange(a.kernel) * a.dilation
    firsts = firsts.astype(np.min_scalar_type(len(taps)))
    return _TapTable(taps, firsts, nowhere if nowhere.any() else None, origins, offsets.ravel())


def _by_window(x: Array, windows: Sequence[Sequence[slice]], values: Array, indices: Array) -> None:
    """Write the maxima and their indices of one block, one window at a time."""
    n, c, *sizes = x.shape
    numbers = np.arange(math.prod(sizes)).reshape(sizes)
    for window in itertools.product(*map(window_moves, windows)):
        into, come = _slices(window)
        pixels = numbers[come].ravel()
        if pixels.size == 0:
            values[into] = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
            indices[into] = -1
            continue
        candidates = x[come].reshape(n, c, pixels.size)
        winners = candidates.argmax(axis=-1)
        best = np.take_along_axis(candidates, winners[..., np.newaxis], axis=-1)[..., 0]
        if x.dtype.kind == "f" and np.isnan(best).any():
            last = pixels.size - 1 - np.isnan(candidates[..., ::-1]).argmax(axis=-1)
            winners = np.where(np.isnan(best), last, winners)
        place = values[into].shape
        values[into] = best.reshape(place)
        indices[into] = pixels[winners].reshape(place)


def _slices(moves: Sequence[Move]) -> tuple[Any, Any]:
    """Return indices of the last axes, of a target and of a source, from one move an axis."""
    return (..., *(move[0] for move in moves)), (..., *(move[1] for move in moves))
