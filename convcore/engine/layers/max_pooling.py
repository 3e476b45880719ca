"""The largest element under a window, where it is, and the way back: see pooling.py.

Compiled loops (max_pooling_compiled.py) do floats under windows of at most 255 taps, NumPy
(max_pooling_numpy.py) all others.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from convcore.engine.geometry import Axis, Spatial
from convcore.engine.layers.max_pooling_compiled import (
    Pool,
    indices_of,
    maxima,
    maxima_gradient,
    pool_of,
)
from convcore.engine.layers.max_pooling_numpy import adaptive_maxima, regular_maxima
from convcore.engine.layers.pooling import (
    FLOATS,
    INTEGERS,
    as_batch,
    check_adaptive,
    check_planes,
    checked_flag,
)
from convcore.engine.layers.windows import pool_axes
from convcore.engine.runtime.checks import Array


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
        values, indices = regular_maxima(batch, axes)
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


class Picked(NamedTuple):
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
        values, indices = adaptive_maxima(batch, outs)
    return (values[0], indices[0]) if unbatched else (values, indices)
