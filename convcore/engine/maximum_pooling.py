"""The largest element under a window, where it is, and the way back: see pooling.py."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from convcore.engine import layout
from convcore.engine.checks import Array
from convcore.engine.geometry import Axis, Spatial, index
from convcore.engine.maxima import Pool, indices_of, maxima, maxima_gradient, pool_of
from convcore.engine.pooling import (
    FLOATS,
    INTEGERS,
    as_batch,
    check_adaptive,
    check_planes,
    checked_flag,
    checked_sizes,
    empty_results,
    output_sizes,
    remembered_if_small,
    wide_enough,
)
from convcore.engine.windows import (
    Move,
    adaptive_windows,
    blocks,
    clipped_windows,
    first_taps,
    pool_axes,
    tap_moves,
    window_moves,
)


def max_pool(
    input: Array,
    kernel_size: Spatial,
    stride: Spatial | None = None,
    padding: Spatial = 0,
    dilation: Spatial = 1,
    ceil_mode: bool = False,
) -> tuple[Array, Array]:
    """Return the largest element under every window, and where it is.

    values[n, c, j] = max over t of input[n, c, j*stride - padding + t*dilation], padding being
    -inf.  Of equal elements the first counts.  NaN is larger than all, and the last NaN counts.

    Parameters
    ----------
    input : (N, C, *sizes) or (C, *sizes); float16, float32, float64 or integers
        One to three spatial axes; any strides.  N may be 0.
    kernel_size : int, or one int a spatial axis
        An int with an array of three axes means a batch with one spatial axis.
    stride : int, or one int a spatial axis
        kernel_size if not given.
    padding : int, or one int a spatial axis
        On both sides, at most half of what the kernel spans.
    dilation : int, or one int a spatial axis
    ceil_mode : bool
        Add a window where the last stride leaves elements over, even if it reaches beyond the
        padding.

    Returns
    -------
    values : (N, C, *outs) or (C, *outs), of the input's dtype
    indices : the same shape, int64
        Of each value in its plane, sizes flattened in order.  -1 where a dilated window meets
        nothing but padding; the value is then -inf, or the lowest integer.
        Both are channels_last if the input is, else contiguous.

    Raises
    ------
    TypeError, ValueError
        With the name of the argument, what it was and what is allowed.

    Notes
    -----
    Reads taps * P elements a plane; beside the results, a few megabytes of scratch memory.

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
    pool = pool_of(axes, batch.dtype)
    if pool is not None:
        values, indices = _with_indices(batch, pool)
    else:
        outs = output_sizes(axes)
        values, indices = empty_results(batch, outs, batch.dtype, np.dtype(np.int64))
        if math.prod(outs) < math.prod(a.kernel for a in axes):
            _maxima_by_window(batch, map(clipped_windows, axes), values, indices)
        else:
            _maxima_by_tap(batch, axes, values, indices)
    return (values[0], indices[0]) if unbatched else (values, indices)


def max_pool_taps(with_taps: bool, input: Array, *steps: Any) -> Picked | None:
    """Return what `max_pool` with the same arguments picks, by taps; None if it must be by indices.

    with_taps : whether the gradient will be asked for
    steps : with one int an axis, and a bool
    """
    unbatched = input.ndim == len(steps[0]) + 1
    shape = input.shape if unbatched else (1, *input.shape[1:])
    try:
        pool = _pool_of_steps(shape, input.dtype, *steps)
    except ValueError:
        _checked_pool(input, *steps)  # whose error names the whole shape
        raise
    return _picked(with_taps, input, unbatched, pool)


def adaptive_max_pool_taps(with_taps: bool, input: Array, outs: tuple[int, ...]) -> Picked | None:
    """Return what `adaptive_max_pool` picks, as `max_pool_taps` does."""
    if 0 in outs or not input.size:
        return None
    batch, unbatched, outs = _checked_adaptive(input, outs)
    pool = pool_of(tuple(zip(batch.shape[2:], outs, strict=True)), batch.dtype)
    return _picked(with_taps, input, unbatched, pool)


@functools.lru_cache(maxsize=64)
def _pool_of_steps(shape: tuple[int, ...], dtype: np.dtype[Any], *steps: Any) -> Pool | None:
    """Check the steps of a pool once, for arrays of one shape."""
    any_array = np.broadcast_to(np.zeros((), dtype), shape)
    return pool_of(_checked_pool(any_array, *steps)[2], dtype)


@dataclass(frozen=True, slots=True)
class Picked:
    """Maxima, and where each was found: the number of its tap in its window."""

    values: Array
    taps: Array | None
    pool: Pool

    def gradient(self, grad: Array, taps: Array) -> Array:
        """Return the gradient of the pool's input."""
        if grad.ndim == len(self.pool.sizes) + 1:
            return maxima_gradient(grad[np.newaxis], taps[np.newaxis], self.pool)[0]
        return maxima_gradient(grad, taps, self.pool)

    def indices(self, taps: Array) -> Array:
        """Return the int64 indices of the maxima in their planes."""
        if taps.ndim == len(self.pool.sizes) + 1:
            return indices_of(taps[np.newaxis], self.pool)[0]
        return indices_of(taps, self.pool)


def _picked(with_taps: bool, input: Array, unbatched: bool, pool: Pool | None) -> Picked | None:
    if pool is None:
        return None
    values, taps = maxima(input[np.newaxis] if unbatched else input, pool, with_taps)
    if unbatched:
        return Picked(values[0], None if taps is None else taps[0], pool)
    return Picked(values, taps, pool)


def _with_indices(batch: Array, pool: Pool) -> tuple[Array, Array]:
    values, taps = maxima(batch, pool, True)
    assert taps is not None
    return values, indices_of(taps, pool)


def _checked_pool(
    input: Any,
    kernel_size: Spatial,
    stride: Spatial | None = None,
    padding: Spatial = 0,
    dilation: Spatial = 1,
    ceil_mode: bool = False,
) -> tuple[Array, bool, tuple[Axis, ...]]:
    """Return (input with a batch axis, whether it had none, the axes of the pool)."""
    batch, unbatched, kernel = as_batch(
        "input", input, "kernel_size", kernel_size, (*FLOATS, *INTEGERS)
    )
    check_planes(batch, unbatched)
    ceil = checked_flag("ceil_mode", ceil_mode)
    axes = pool_axes(batch.shape[1], batch.shape[2:], kernel, stride, padding, dilation, ceil)
    return batch, unbatched, axes


def _checked_adaptive(input: Any, output_size: Spatial) -> tuple[Array, bool, tuple[int, ...]]:
    """Return the same for an adaptive pool, with its sizes for axes."""
    batch, unbatched, outs = as_batch("input", input, "output_size", output_size, FLOATS)
    check_adaptive(batch, unbatched, outs)
    return batch, unbatched, outs


def adaptive_max_pool(input: Array, output_size: Spatial) -> tuple[Array, Array]:
    """Return the largest element of each of ``output_size`` windows an axis, and where it is.

    Window i of an axis is [floor(i*size/out), ceil((i+1)*size/out)).

    Parameters
    ----------
    input : as for `max_pool`, floating
    output_size : int, or one int a spatial axis
        As kernel_size of `max_pool`; may be 0.

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
    pool = None
    if batch.size and 0 not in outs:
        pool = pool_of(tuple(zip(batch.shape[2:], outs, strict=True)), batch.dtype)
    if pool is not None:
        values, indices = _with_indices(batch, pool)
    else:
        values, indices = empty_results(batch, outs, batch.dtype, np.dtype(np.int64))
        _maxima_by_window(batch, map(adaptive_windows, batch.shape[2:], outs), values, indices)
    return (values[0], indices[0]) if unbatched else (values, indices)


def scatter_pixels(values: Array, indices: Array, input_size: Sequence[int]) -> Array:
    """Add values to planes of zeros at their indices: the gradient of `max_pool`.

    planes[n, c, i] = sum over the j with indices[n, c, j] = i of values[n, c, j].

    Parameters
    ----------
    values : (N, C, *outs) or (C, *outs); float16, float32 or float64
    indices : the same shape, integers
        Into a plane, flattened; -1 leaves its value out.
    input_size : one int a spatial axis

    Returns
    -------
    (N, C, *input_size) or (C, *input_size), of the dtype of values
        channels_last if values is, else contiguous.

    Raises
    ------
    TypeError, ValueError
        As `max_pool`; shapes that differ; an index outside its plane.

    Notes
    -----
    The sums are made in float64, in the order of j, and rounded once.

    References
    ----------
    M. Zeiler, R. Fergus, Visualizing and understanding convolutional networks (2014), section 2.1.

    Examples
    --------
    >>> import numpy as np
    >>> scatter_pixels(np.array([[1.0, 2.0, 4.0]]), np.array([[0, 2, 2]]), (4,)).tolist()
    [[1.0, 0.0, 6.0, 0.0]]
    """
    sizes = checked_sizes("input_size", input_size, least=0)
    batch, unbatched, _ = as_batch("values", values, "input_size", sizes, FLOATS)
    places = _indices(indices, batch, unbatched, sizes)
    if places.shape != batch.shape:
        raise ValueError(
            f"indices must have the shape of values, {list(values.shape)}, "
            f"got {list(indices.shape)}"
        )
    (planes,) = empty_results(batch, sizes, batch.dtype)
    channels_last = layout.is_channels_last(planes.shape, planes.strides)
    for block in blocks(planes.shape, planes.itemsize):
        terms, (at, kept) = batch[block], _memory_places(places[block], sizes, channels_last)
        if kept.all():
            terms, at = _memory(terms, channels_last), _memory(at, channels_last)
        else:
            terms, at = terms[kept], at[kept]
        memory = _memory(planes[block], channels_last)
        sums = np.bincount(at.ravel(), terms.ravel(), minlength=memory.size)
        memory[...] = sums.reshape(memory.shape)
    return planes[0] if unbatched else planes


def place_pixels(values: Array, indices: Array, input_size: Sequence[int]) -> Array:
    """Put values into planes of zeros at their indices; of several at one place, the last.

    Parameters
    ----------
    values, indices, input_size : as for `scatter_pixels`, but without an index of -1

    Returns
    -------
    (N, C, *input_size) or (C, *input_size), of the dtype of values
        channels_last if values is, else contiguous.

    Raises
    ------
    TypeError, ValueError
        As `scatter_pixels`.

    Examples
    --------
    >>> import numpy as np
    >>> place_pixels(np.array([[1.0, 2.0, 4.0]]), np.array([[0, 2, 2]]), (4,)).tolist()
    [[1.0, 0.0, 4.0, 0.0]]
    """
    sizes = checked_sizes("input_size", input_size, least=0)
    batch, unbatched, _ = as_batch("values", values, "input_size", sizes, FLOATS)
    if 0 in sizes:  # as in PyTorch, nothing is asked of indices into nothing
        (planes,) = empty_results(batch, sizes, batch.dtype)
        return planes[0] if unbatched else planes
    places = _indices(indices, batch, unbatched, sizes, least=0)
    if places.shape != batch.shape:
        raise ValueError(
            f"indices must have the shape of values, {list(values.shape)}, "
            f"got {list(indices.shape)}"
        )
    (planes,) = empty_results(batch, sizes, batch.dtype)
    planes[...] = 0
    channels_last = layout.is_channels_last(planes.shape, planes.strides)
    at, _ = _memory_places(places, sizes, channels_last)
    memory = _memory(planes, channels_last).reshape(-1)
    memory[_memory(at, channels_last)] = _memory(batch, channels_last)
    return planes[0] if unbatched else planes


def gather_pixels(input: Array, indices: Array, rank: int | None = None) -> Array:
    """Take the elements of planes at indices: the adjoint of `scatter_pixels`.

    values[n, c, j] = input[n, c, indices[n, c, j]], and 0 where the index is -1.

    Parameters
    ----------
    input : (N, C, *sizes) or (C, *sizes); float16, float32, float64 or integers
    indices : (N, C, *outs) or (C, *outs), integers
        Into a plane, flattened; as many axes as input.
    rank : int, optional
        The number of spatial axes; as many as there would be in a batch if not given.

    Returns
    -------
    The shape of indices, of the dtype of input
        channels_last if input is, else contiguous.

    Raises
    ------
    TypeError, ValueError
        As `scatter_pixels`.

    Examples
    --------
    >>> import numpy as np
    >>> gather_pixels(np.array([[3.0, 1.0, 2.0]]), np.array([[0, 2, 2, -1]]), rank=1).tolist()
    [[3.0, 2.0, 2.0, 0.0]]
    """
    axes = index("rank", getattr(input, "ndim", 3) - 2 if rank is None else rank)
    if not 1 <= axes <= 3:
        raise ValueError(f"rank must be 1, 2 or 3: one to three spatial axes, got {axes}")
    per = (1,) * axes
    batch, unbatched, _ = as_batch("input", input, "rank", per, (*FLOATS, *INTEGERS))
    places = _indices(indices, batch, unbatched, batch.shape[2:])
    (values,) = empty_results(batch, places.shape[2:], batch.dtype)
    sizes, channels_last = batch.shape[2:], layout.is_channels_last(batch.shape, batch.strides)
    for block in blocks(places.shape, places.itemsize):
        at, kept = _memory_places(places[block], sizes, channels_last)
        memory = _memory(batch[block], channels_last).reshape(-1)
        if kept.all():
            values[block] = memory[at]
        else:
            values[block] = 0
            values[block][kept] = memory[at[kept]]
    return values[0] if unbatched else values


def _maxima_by_tap(x: Array, axes: tuple[Axis, ...], values: Array, indices: Array) -> None:
    """Write the maxima and their indices, all windows at a time."""
    if not values.size:
        return
    table = remembered_if_small(output_sizes(axes), _tap_table)(axes)
    for block in blocks(x.shape, x.itemsize):
        _block_by_tap(x[block], table, values[block], indices[block])


def _block_by_tap(x: Array, table: _TapTable, values: Array, indices: Array) -> None:
    """Write the maxima and their indices of one block.

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


@dataclass(frozen=True, slots=True)
class _TapTable:
    """What the taps of a kernel read and write, and how a winning tap becomes a pixel number."""

    taps: list[tuple[Any, Any]]  # for each tap, the windows that it serves and what it reads
    firsts: Array  # (*outs): the first tap of each window that meets the input
    nowhere: Array | None  # (*outs): where there is no such tap; None if there is everywhere
    origins: Array  # (*outs): the pixel number of each window's first tap, padding counted too
    offsets: Array  # (taps,): what each tap adds to that


@functools.lru_cache(maxsize=32)
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


def _maxima_by_window(
    x: Array, windows: Iterable[Sequence[slice]], values: Array, indices: Array
) -> None:
    """Write the maxima and their indices, one window at a time."""
    if not values.size:
        return
    windows = list(windows)
    for block in blocks(x.shape, x.itemsize):
        _block_by_window(x[block], windows, values[block], indices[block])


def _block_by_window(
    x: Array, windows: Sequence[Sequence[slice]], values: Array, indices: Array
) -> None:
    """Write the maxima and their indices of one block."""
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


def _indices(
    value: Any, batch: Array, unbatched: bool, sizes: Sequence[int], least: int = -1
) -> Array:
    """Return indices with a batch axis; an error unless they fit the batch and planes of sizes."""
    if not isinstance(value, np.ndarray) or isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"indices must be a numpy.ndarray, got {type(value).__name__}")
    if value.dtype not in INTEGERS:
        raise TypeError(f"indices must be an array of integers, got {value.dtype}")
    indices = value[np.newaxis] if unbatched else value
    if indices.ndim != batch.ndim or indices.shape[:2] != batch.shape[:2]:
        raise ValueError(
            f"indices must have planes as {list(batch.shape[unbatched:])} has, "
            f"got shape {list(value.shape)}"
        )
    if indices.size and not (indices.min() >= least and indices.max() < math.prod(sizes)):
        wrong = indices[(indices < least) | (indices >= math.prod(sizes))].flat[0]
        raise ValueError(
            f"Found an invalid max index: {wrong} "
            f"(output volumes are of size {'x'.join(map(str, sizes))})"
        )
    return indices


def _memory(array: Array, channels_last: bool) -> Array:
    """Return an (N, C, *sizes) array with its axes as they follow each other in a dense block."""
    return np.moveaxis(array, 1, -1) if channels_last else array


def _memory_places(
    indices: Array, sizes: Sequence[int], channels_last: bool
) -> tuple[Array, Array]:
    """Return where in a dense block of planes each index points, and which indices are not -1."""
    n, c = indices.shape[:2]
    indices = indices.astype(np.int64, copy=False)  # small or unsigned ones could not hold places
    pixels = math.prod(sizes)
    origins = np.arange(n)[:, np.newaxis] * (c * pixels)
    origins = origins + np.arange(c) * (1 if channels_last else pixels)
    places = indices * c if channels_last else indices
    return places + origins.reshape(n, c, *(1,) * len(sizes)), indices >= 0
