"""Pooling and its adjoints on ndarrays: the largest, or the mean, of what lies under a window.

Nothing here makes a matrix of patches.  Regular windows are walked tap by tap, each tap a strided
slice of the input that is as large as the output; adaptive windows, which differ in length, are
walked one by one.  No loop is parallel, so results cannot depend on the number of threads.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from convcore.engine import layout
from convcore.engine.checks import Array, check_memory
from convcore.engine.geometry import Axis, Spatial, index, is_sequence, per_axis, shown
from convcore.engine.windows import (
    Move,
    adaptive_windows,
    add_moved,
    adjoint,
    blocks,
    clipped_windows,
    first_taps,
    pool_axes,
    tap_moves,
    window_moves,
)

FLOATS = tuple(np.dtype(t) for t in ("float16", "float32", "float64"))
INTEGERS = tuple(np.dtype(f"{sign}int{8 * size}") for sign in ("", "u") for size in (1, 2, 4, 8))

# What a pool needs beside its arrays is remembered if it has at most so many outputs a plane: 32
# tables of 8 bytes an output are then no more than 4 MiB.
SMALL = 1 << 14


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
    batch, unbatched, kernel = _batch(
        "input", input, "kernel_size", kernel_size, (*FLOATS, *INTEGERS)
    )
    _check_planes(batch, unbatched)
    ceil = _flag("ceil_mode", ceil_mode)
    axes = pool_axes(batch.shape[1], batch.shape[2:], kernel, stride, padding, dilation, ceil)
    outs = _outs(axes)
    values, indices = _results(batch, outs, batch.dtype, np.dtype(np.int64))
    if math.prod(outs) < math.prod(kernel):
        _maxima_by_window(batch, map(clipped_windows, axes), values, indices)
    else:
        _maxima_by_tap(batch, axes, values, indices)
    return (values[0], indices[0]) if unbatched else (values, indices)


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
    batch, unbatched, outs = _batch("input", input, "output_size", output_size, FLOATS)
    _check_adaptive(batch, unbatched, outs)
    values, indices = _results(batch, outs, batch.dtype, np.dtype(np.int64))
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
    sizes = _sizes("input_size", input_size, least=0)
    batch, unbatched, _ = _batch("values", values, "input_size", sizes, FLOATS)
    places = _indices(indices, batch, unbatched, sizes)
    if places.shape != batch.shape:
        raise ValueError(
            f"indices must have the shape of values, {list(values.shape)}, "
            f"got {list(indices.shape)}"
        )
    (planes,) = _results(batch, sizes, batch.dtype)
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
    batch, unbatched, _ = _batch("input", input, "rank", per, (*FLOATS, *INTEGERS))
    places = _indices(indices, batch, unbatched, batch.shape[2:])
    (values,) = _results(batch, places.shape[2:], batch.dtype)
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


def avg_pool(
    input: Array,
    kernel_size: Spatial,
    stride: Spatial | None = None,
    padding: Spatial = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """Return the mean of the elements under every window.

    output[n, c, j] = sum over t of input[n, c, j*stride - padding + t] / count[j], padding being 0.

    Parameters
    ----------
    input : (N, C, *sizes) or (C, *sizes); float16, float32 or float64
        One to three spatial axes; any strides.  N may be 0.
    kernel_size, stride, padding, ceil_mode
        As for `max_pool`.
    count_include_pad : bool
        Whether count takes in what a window covers of the padding.  What it covers beyond that
        (see ceil_mode) never counts.
    divisor_override : int, optional
        Divide by this instead; not 0.

    Returns
    -------
    (N, C, *outs) or (C, *outs), of the input's dtype
        channels_last if the input is, else contiguous.

    Raises
    ------
    TypeError, ValueError
        With the name of the argument, what it was and what is allowed.

    Notes
    -----
    Sums along one axis after the other: about the sum of the kernel's sizes additions an output,
    not their product.  float16 is summed in float32 and rounded once.

    References
    ----------
    Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, Gradient-based learning applied to document
    recognition (1998), section II.A ("sub-sampling").

    Examples
    --------
    >>> import numpy as np
    >>> avg_pool(np.arange(16.0).reshape(1, 4, 4), (2, 2)).tolist()
    [[[2.5, 4.5], [10.5, 12.5]]]
    """
    batch, unbatched, kernel = _batch("input", input, "kernel_size", kernel_size, FLOATS)
    _check_planes(batch, unbatched)
    ceil, include = _flag("ceil_mode", ceil_mode), _flag("count_include_pad", count_include_pad)
    override = _checked_divisor(divisor_override)
    axes = pool_axes(batch.shape[1], batch.shape[2:], kernel, stride, padding, ceil_mode=ceil)
    outs = _outs(axes)
    (means,) = _results(batch, outs, batch.dtype)
    if means.size:
        _mean(batch, means, _small(outs, _regular)(axes, include, override))
    return means[0] if unbatched else means


def avg_pool_grad(
    grad_output: Array,
    input_size: Sequence[int],
    kernel_size: Spatial,
    stride: Spatial | None = None,
    padding: Spatial = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """Spread every mean over the elements it was made of: the adjoint of `avg_pool`.

    grad_input[n, c, i] = sum over the windows j that cover i of grad_output[n, c, j] / count[j].

    Parameters
    ----------
    grad_output : (N, C, *outs) or (C, *outs); float16, float32 or float64
    input_size : one int a spatial axis
        The spatial sizes of the array that `avg_pool` had.
    kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
        As for `avg_pool`.

    Returns
    -------
    (N, C, *input_size) or (C, *input_size), of grad_output's dtype
        channels_last if grad_output is, else contiguous.

    Raises
    ------
    TypeError, ValueError
        As `avg_pool`; also if grad_output has not the shape of its output.

    Examples
    --------
    >>> import numpy as np
    >>> avg_pool_grad(np.array([[4.0, 8.0]]), (5,), 2).tolist()
    [[2.0, 2.0, 4.0, 4.0, 0.0]]
    """
    sizes = _sizes("input_size", input_size, least=0)
    batch, unbatched, _ = _batch("grad_output", grad_output, "input_size", sizes, FLOATS)
    kernel = per_axis("kernel_size", kernel_size, len(sizes))
    ceil, include = _flag("ceil_mode", ceil_mode), _flag("count_include_pad", count_include_pad)
    override = _checked_divisor(divisor_override)
    axes = pool_axes(batch.shape[1], sizes, kernel, stride, padding, ceil_mode=ceil)
    outs = _outs(axes)
    if batch.shape[2:] != outs:
        raise ValueError(
            f"grad_output must have the sizes of the pool's output, {list(outs)}, "
            f"got {list(batch.shape[2:])}"
        )
    (grads,) = _results(batch, sizes, batch.dtype)
    if grads.size:
        _spread(batch, grads, _small(outs, _regular)(axes, include, override))
    return grads[0] if unbatched else grads


def adaptive_avg_pool(input: Array, output_size: Spatial) -> Array:
    """Return the mean of each of ``output_size`` windows an axis.

    Window i of an axis is [floor(i*size/out), ceil((i+1)*size/out)).

    Parameters
    ----------
    input : as for `avg_pool`
    output_size : int, or one int a spatial axis
        As kernel_size of `avg_pool`; may be 0.

    Returns
    -------
    (N, C, *output_size) or (C, *output_size), of the input's dtype
        channels_last if the input is, else contiguous.

    Raises
    ------
    TypeError, ValueError
        As `avg_pool`.

    References
    ----------
    As `adaptive_max_pool`.

    Examples
    --------
    >>> import numpy as np
    >>> adaptive_avg_pool(np.array([[3.0, 1.0, 2.0]]), (2,))
    array([[2. , 1.5]])
    """
    batch, unbatched, outs = _batch("input", input, "output_size", output_size, FLOATS)
    _check_adaptive(batch, unbatched, outs)
    (means,) = _results(batch, outs, batch.dtype)
    if means.size:
        _mean(batch, means, _small(outs, _adaptive)(batch.shape[2:], outs))
    return means[0] if unbatched else means


def adaptive_avg_pool_grad(grad_output: Array, input_size: Sequence[int]) -> Array:
    """Spread every mean over its window: the adjoint of `adaptive_avg_pool`.

    Parameters
    ----------
    grad_output : (N, C, *outs) or (C, *outs); float16, float32 or float64
    input_size : one int a spatial axis
        The spatial sizes of the array that `adaptive_avg_pool` had.

    Returns
    -------
    (N, C, *input_size) or (C, *input_size), of grad_output's dtype
        channels_last if grad_output is, else contiguous.

    Raises
    ------
    TypeError, ValueError
        As `avg_pool_grad`.

    Examples
    --------
    >>> import numpy as np
    >>> adaptive_avg_pool_grad(np.array([[2.0, 4.0]]), (3,))
    array([[1., 3., 2.]])
    """
    sizes = _sizes("input_size", input_size, least=1)
    batch, unbatched, _ = _batch("grad_output", grad_output, "input_size", sizes, FLOATS)
    outs = batch.shape[2:]
    (grads,) = _results(batch, sizes, batch.dtype)
    if grads.size:
        _spread(batch, grads, _small(outs, _adaptive)(sizes, outs))
    return grads[0] if unbatched else grads


def _small(outs: Sequence[int], make: Callable[..., Any]) -> Callable[..., Any]:
    """Return a remembered function, or the plain one if what it makes is too large to keep.

    Making it is more than half of a small call, and nothing beside a large one.
    """
    return make if math.prod(outs) <= SMALL else make.__wrapped__  # type: ignore[attr-defined]


def _maxima_by_tap(x: Array, axes: tuple[Axis, ...], values: Array, indices: Array) -> None:
    """Write the maxima and their indices, all windows at a time."""
    if not values.size:
        return
    table = _small(_outs(axes), _tap_table)(axes)
    for block in blocks(x.shape, x.itemsize):
        _block_by_tap(x[block], table, values[block], indices[block])


def _block_by_tap(x: Array, table: _TapTable, values: Array, indices: Array) -> None:
    """Write the maxima and their indices of one block.

    Taps come in order and only a larger element replaces an earlier one.  The numbers of the taps
    that did so only grow, so that a product and a maximum of small integers keep the last.
    """
    best = np.empty_like(values, _wide(x.dtype))
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


@dataclass(frozen=True, slots=True)
class _Averaging:
    """A pool of means: sums by the moves of each axis in turn, over one divisor or one a window."""

    moves: tuple[list[Move], ...]
    sizes: tuple[int, ...]
    outs: tuple[int, ...]
    divisor: Array


def _mean(batch: Array, means: Array, pool: _Averaging) -> None:
    """Write the sums under every window, divided."""
    wide = _wide(batch.dtype)
    divisor = pool.divisor.astype(wide)
    for block in blocks(batch.shape, batch.itemsize):
        sums = batch[block].astype(wide, copy=False)
        for axis, out in enumerate(pool.outs):
            sums = _moved(sums, axis, pool.moves[axis], out)
        np.divide(sums, divisor, out=means[block], casting="same_kind")


def _spread(batch: Array, grads: Array, pool: _Averaging) -> None:
    """Apply the adjoint of `_mean`: its steps in reverse order, each exchanged."""
    divisor = pool.divisor.astype(_wide(batch.dtype))
    for block in blocks(grads.shape, grads.itemsize):
        parts = batch[block] / divisor
        for axis in reversed(range(len(pool.sizes))):
            parts = _moved(parts, axis, adjoint(pool.moves[axis]), pool.sizes[axis])
        grads[block] = parts


def _moved(source: Array, axis: int, moves: Sequence[Move], size: int) -> Array:
    """Return the sum of the moves along one spatial axis, which becomes ``size`` long."""
    shape = list(source.shape)
    shape[2 + axis] = size
    target = np.zeros_like(source, shape=shape)
    whole = (slice(None), slice(None))
    add_moved(target, source, [moves, *[[whole]] * (source.ndim - 3 - axis)])
    return target


def _checked_divisor(override: Any) -> int | None:
    if override is None:
        return None
    divisor = index("divisor_override", override)
    if divisor == 0:
        raise ValueError("divisor must be not zero: divisor_override is 0")
    if not -(2**63) <= divisor < 2**63:
        raise ValueError(f"divisor_override must be an int of 64 bits, got {divisor}")
    return divisor


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be a bool, got {shown(value)}")
    return bool(value)


def _sizes(name: str, value: Any, least: int) -> tuple[int, ...]:
    """Return the sizes of one to three spatial axes from a sequence."""
    if not is_sequence(value):
        raise TypeError(f"{name} must be a sequence of ints, got {shown(value)}")
    if not 1 <= len(value) <= 3:
        raise ValueError(
            f"{name} must be one to three ints, one a spatial axis, got {shown(value)}"
        )
    return per_axis(name, value, len(value), least)


def _outs(axes: Sequence[Axis]) -> tuple[int, ...]:
    return tuple(a.out for a in axes)


@functools.lru_cache(maxsize=32)
def _regular(axes: tuple[Axis, ...], include_pad: bool, override: int | None) -> _Averaging:
    """Return the averaging of windows at a stride.

    An axis with fewer windows than taps is walked by its windows: padding can make taps many.
    """
    counts = []
    for a in axes:
        pad = a.before if include_pad else 0
        starts = np.arange(a.out) * a.stride - a.before
        counts.append(np.minimum(starts + a.kernel, a.size + pad) - np.maximum(starts, -pad))
    return _Averaging(
        moves=tuple(
            window_moves(clipped_windows(a)) if a.out < a.kernel else tap_moves(a) for a in axes
        ),
        sizes=tuple(a.size for a in axes),
        outs=_outs(axes),
        divisor=_product(counts) if override is None else np.array(override),
    )


@functools.lru_cache(maxsize=32)
def _adaptive(sizes: tuple[int, ...], outs: tuple[int, ...]) -> _Averaging:
    """Return the averaging of windows that cut ``sizes`` into ``outs`` parts.

    Many equal windows that do not overlap are walked by the taps of the regular pool that they are.
    """
    moves, counts = [], []
    for size, out in zip(sizes, outs, strict=True):
        windows = adaptive_windows(size, out)
        counts.append(np.array([w.stop - w.start for w in windows]))
        if out and size % out == 0 and size // out < out:
            moves.append(tap_moves(Axis(size, size // out, size // out)))
        else:
            moves.append(window_moves(windows))
    return _Averaging(tuple(moves), sizes, outs, _product(counts))


def _product(counts: Sequence[Array]) -> Array:
    """Return the outer product of one row of counts an axis, as one number if all are equal."""
    product = np.ones(())  # of floats: three large kernels cover more than an int64 can count
    for count in counts:
        product = product[..., np.newaxis] * count
    if product.size and (product == product.flat[0]).all():
        product = product.flat[:1].reshape(())
    return product


def _wide(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype to compute in: float32 for float16, which NumPy computes slowly."""
    return np.dtype(np.float32) if dtype == np.float16 else dtype


def _batch(
    name: str, value: Any, size_name: str, size: Any, dtypes: Sequence[np.dtype[Any]]
) -> tuple[Array, bool, tuple[int, ...]]:
    """Return (value with a batch axis, whether it had none, one int of size a spatial axis)."""
    if not isinstance(value, np.ndarray) or isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{name} must be a numpy.ndarray, got {type(value).__name__}")
    if value.dtype not in dtypes or not value.dtype.isnative:
        names = ", ".join(dtype.name for dtype in dtypes)
        raise TypeError(f"{name} must be an array of {names}, got {value.dtype}")
    value = np.asarray(value)
    rank = len(size) if is_sequence(size) else value.ndim - 2
    if not 1 <= rank <= 3 or value.ndim not in (rank + 1, rank + 2):
        raise ValueError(
            f"non-empty {rank + 1}D or {rank + 2}D (batch mode) tensor expected for {name}: "
            "one to three spatial axes after (N, C) or (C,), "
            f"as many as {size_name} {shown(size)} has, got {name} of size: {list(value.shape)}"
        )
    sizes = per_axis(size_name, size, rank)
    return (value[np.newaxis], True, sizes) if value.ndim == rank + 1 else (value, False, sizes)


def _check_planes(batch: Array, unbatched: bool) -> None:
    """Raise ValueError if an axis other than that of the batch is empty."""
    if 0 in batch.shape[1:]:
        rank = batch.ndim - 2
        raise ValueError(
            f"Expected {rank + 1}D or {rank + 2}D (batch mode) tensor with optional 0 dim batch "
            f"size for input, but got:{list(batch.shape[unbatched:])}"
        )


def _check_adaptive(batch: Array, unbatched: bool, outs: Sequence[int]) -> None:
    """Raise ValueError if a spatial axis is empty, or an output size negative."""
    if min(outs) < 0:
        raise ValueError(
            "elements of output_size must be greater than or equal to 0 "
            f"but received {{{', '.join(map(str, outs))}}}"
        )
    if 0 in batch.shape[2:]:
        shape = batch.shape[unbatched:]
        raise ValueError(
            "Expected input to have non-zero size for non-batch dimensions, but input has sizes "
            f"{list(shape)} with dimension {shape.index(0, 2 - unbatched)} being empty"
        )


def _indices(value: Any, batch: Array, unbatched: bool, sizes: Sequence[int]) -> Array:
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
    if indices.size and not (indices.min() >= -1 and indices.max() < math.prod(sizes)):
        wrong = indices[(indices < -1) | (indices >= math.prod(sizes))].flat[0]
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


def _results(batch: Array, sizes: Sequence[int], *dtypes: np.dtype[Any]) -> list[Array]:
    """Return new arrays of (N, C, *sizes), one of each dtype, in the batch's memory format."""
    shape = (*batch.shape[:2], *sizes)
    check_memory(shape, 8)
    channels_last = layout.is_channels_last(batch.shape, batch.strides)
    return [layout.empty(shape, dtype, channels_last) for dtype in dtypes]
