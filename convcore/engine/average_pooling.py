"""The mean of the elements under a window, and its adjoint: see pooling.py."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from convcore.engine.checks import Array
from convcore.engine.geometry import Axis, Spatial, index, per_axis
from convcore.engine.pooling import (
    FLOATS,
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
    add_moved,
    adjoint,
    blocks,
    clipped_windows,
    pool_axes,
    tap_moves,
    window_moves,
)


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
    batch, unbatched, kernel = as_batch("input", input, "kernel_size", kernel_size, FLOATS)
    check_planes(batch, unbatched)
    ceil, include = (
        checked_flag("ceil_mode", ceil_mode),
        checked_flag("count_include_pad", count_include_pad),
    )
    override = _checked_divisor(divisor_override)
    axes = pool_axes(batch.shape[1], batch.shape[2:], kernel, stride, padding, ceil_mode=ceil)
    outs = output_sizes(axes)
    (means,) = empty_results(batch, outs, batch.dtype)
    if means.size:
        _mean(batch, means, remembered_if_small(outs, _regular)(axes, include, override))
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
    sizes = checked_sizes("input_size", input_size, least=0)
    batch, unbatched, _ = as_batch("grad_output", grad_output, "input_size", sizes, FLOATS)
    kernel = per_axis("kernel_size", kernel_size, len(sizes))
    ceil, include = (
        checked_flag("ceil_mode", ceil_mode),
        checked_flag("count_include_pad", count_include_pad),
    )
    override = _checked_divisor(divisor_override)
    axes = pool_axes(batch.shape[1], sizes, kernel, stride, padding, ceil_mode=ceil)
    outs = output_sizes(axes)
    if batch.shape[2:] != outs:
        raise ValueError(
            f"grad_output must have the sizes of the pool's output, {list(outs)}, "
            f"got {list(batch.shape[2:])}"
        )
    (grads,) = empty_results(batch, sizes, batch.dtype)
    if grads.size:
        _spread(batch, grads, remembered_if_small(outs, _regular)(axes, include, override))
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
    batch, unbatched, outs = as_batch("input", input, "output_size", output_size, FLOATS)
    check_adaptive(batch, unbatched, outs)
    (means,) = empty_results(batch, outs, batch.dtype)
    if means.size:
        _mean(batch, means, remembered_if_small(outs, _adaptive)(batch.shape[2:], outs))
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
    sizes = checked_sizes("input_size", input_size, least=1)
    batch, unbatched, _ = as_batch("grad_output", grad_output, "input_size", sizes, FLOATS)
    outs = batch.shape[2:]
    (grads,) = empty_results(batch, sizes, batch.dtype)
    if grads.size:
        _spread(batch, grads, remembered_if_small(outs, _adaptive)(sizes, outs))
    return grads[0] if unbatched else grads


@dataclass(frozen=True, slots=True)
class _Averaging:
    """A pool of means: sums by the moves of each axis in turn, over one divisor or one a window."""

    moves: tuple[list[Move], ...]
    sizes: tuple[int, ...]
    outs: tuple[int, ...]
    divisor: Array


def _mean(batch: Array, means: Array, pool: _Averaging) -> None:
    """Write the sums under every window, divided."""
    wide = wide_enough(batch.dtype)
    divisor = pool.divisor.astype(wide)
    for block in blocks(batch.shape, batch.itemsize):
        sums = batch[block].astype(wide, copy=False)
        for axis, out in enumerate(pool.outs):
            sums = _moved(sums, axis, pool.moves[axis], out)
        np.divide(sums, divisor, out=means[block], casting="same_kind")


def _spread(batch: Array, grads: Array, pool: _Averaging) -> None:
    """Apply the adjoint of `_mean`: its steps in reverse order, each exchanged."""
    divisor = pool.divisor.astype(wide_enough(batch.dtype))
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
        outs=output_sizes(axes),
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
