"""Max pooling with NumPy: integers, and windows with more taps than a byte can number.

Small windows are processed tap by tap, each tap a strided slice of the input as large as the
output; windows larger than the output, or of different lengths, one by one.  Long overlapping
windows are processed axis by axis: the maximum of 2n elements is the larger of two maxima of n, so
a window of k elements takes about log2(k) steps.  Other windows are compiled: see max_pooling.py.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from convcore.engine.geometry import Axis
from convcore.engine.layers.pooling.pooling import empty_results, output_sizes, wide_enough
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
    trimmed = tuple(map(_without_common_padding, axes))
    if _doubling_pays(trimmed):
        _by_blocks(_by_doubling, batch, lambda: trimmed, values, indices)
    elif math.prod(outs) < math.prod(a.kernel for a in axes):
        _by_blocks(_by_window, batch, lambda: list(map(clipped_windows, axes)), values, indices)
    else:
        _by_blocks(_by_tap, batch, lambda: _tap_table(axes), values, indices)
    return values, indices


def adaptive_max_pool_by_numpy(batch: Array, outs: tuple[int, ...]) -> tuple[Array, Array]:
    """Return maxima and indices like `max_pool_by_numpy`, for adaptive windows."""
    values, indices = empty_results(batch, outs, batch.dtype, _INDEX)
    sizes = batch.shape[2:]
    _by_blocks(_by_window, batch, lambda: list(map(adaptive_windows, sizes, outs)), values, indices)
    return values, indices


def _by_blocks(
    write: Callable[..., None], x: Array, windows: Callable[[], Any], values: Array, indices: Array
) -> None:
    """Write the maxima and their indices block by block, if there are any."""
    if values.size:
        made = windows()
        for block in blocks(x.shape, x.itemsize):
            write(x[block], made, values[block], indices[block])


def _by_tap(x: Array, table: _TapTable, values: Array, indices: Array) -> None:
    """Write the maxima and their indices of one block, tap by tap.

    Taps are processed in order and only a larger element replaces an earlier one.  The numbers of
    replacing taps only increase, so that a product and a maximum of small integers store the last.
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
    """Slices read and written by each tap, and the conversion of winning taps to pixel numbers."""

    taps: list[tuple[Any, Any]]  # for each tap, its windows and the slice it reads
    firsts: Array  # (*outs): the first tap of each window that meets the input
    nowhere: Array | None  # (*outs): whether there is no such tap; None if there is always one
    origins: Array  # (*outs): the pixel number of each window's first tap, including padding
    offsets: Array  # (taps,): each tap's offset from the origin

    @property
    def table_bytes(self) -> int:
        """Return the bytes of the tables, with half a kilobyte for the slices of each tap."""
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


def _without_common_padding(a: Axis) -> Axis:
    """Return the axis without the taps that are in the padding for every window."""
    if a.dilation > 1:
        return a
    before = max(0, a.before - (a.out - 1) * a.stride)
    after = max(0, a.kernel - a.before - a.size)
    return a._replace(
        kernel=a.kernel - before - after, before=a.before - before, after=a.after - after
    )


def _doubling_pays(axes: Sequence[Axis]) -> bool:
    """Return whether `_by_doubling` takes fewer steps than one per tap of each window."""
    covered = math.prod((a.out - 1) * a.stride + a.extent for a in axes)
    steps = 2 * covered * sum(a.kernel.bit_length() for a in axes)
    fits = covered <= 4 * math.prod(a.size for a in axes) + 64
    return fits and steps < math.prod(a.out * a.kernel for a in axes)


def _by_doubling(x: Array, axes: Sequence[Axis], values: Array, indices: Array) -> None:
    """Write the maxima and their indices of one block, axis by axis, the last axis first."""
    pixels = math.prod(a.size for a in axes)
    numbers = np.arange(pixels, dtype=np.min_scalar_type(-pixels)).reshape(x.shape[2:])
    best = x.astype(wide_enough(x.dtype), copy=False)
    winners = np.broadcast_to(numbers, x.shape)
    for position, a in reversed(list(enumerate(axes, 2))):
        lines = np.moveaxis(best, position, -1), np.moveaxis(winners, position, -1)
        best, winners = (np.moveaxis(y, -1, position) for y in _line_maxima(*lines, a))
    values[...], indices[...] = best, winners


def _line_maxima(best: Array, winners: Array, a: Axis) -> tuple[Array, Array]:
    """Return the maxima under windows along the last axis, and the winner of each."""
    length = (a.out - 1) * a.stride + a.extent
    end = min(a.size, length - a.before)
    covered = slice(a.before, a.before + end)
    least = -np.inf if best.dtype.kind == "f" else np.iinfo(best.dtype).min
    lines = np.full((*best.shape[:-1], length), least, best.dtype)
    numbers = np.full(lines.shape, -1, winners.dtype)
    lines[..., covered], numbers[..., covered] = best[..., :end], winners[..., :end]
    taps = 1
    while taps < a.kernel:
        more = min(taps, a.kernel - taps)
        shift = more * a.dilation
        lines, numbers = _larger(
            (lines[..., :-shift], numbers[..., :-shift]), (lines[..., shift:], numbers[..., shift:])
        )
        taps += more
    return lines[..., :: a.stride], numbers[..., :: a.stride]


def _larger(first: tuple[Array, Array], second: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return the larger of two maxima and its winner: on ties the first, or the last NaN."""
    values, winners = zip(first, second, strict=True)
    later = values[1] > values[0]
    later |= np.isnan(values[1])
    later |= (winners[0] < 0) & (winners[1] >= 0)
    return np.where(later, *values[::-1]), np.where(later, *winners[::-1])


def _slices(moves: Sequence[Move]) -> tuple[Any, Any]:
    """Return indices of the last axes, for a target and a source, from one move per axis."""
    return (..., *(move[0] for move in moves)), (..., *(move[1] for move in moves))
