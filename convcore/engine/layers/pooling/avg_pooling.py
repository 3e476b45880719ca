"""Average pooling and adaptive average pooling, and their gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from convcore.engine.geometry import Axis, Spatial, index, per_axis
from convcore.engine.layers.interpolation.separable import Map, SeparableMap, window_weights
from convcore.engine.layers.pooling.global_avg_pooling import global_avg_pool
from convcore.engine.layers.pooling.long_windows import LongWindows
from convcore.engine.layers.pooling.pooling import (
    FLOATS,
    as_batch,
    check_adaptive,
    check_planes,
    checked_flag,
    checked_sizes,
    empty_results,
    output_sizes,
)
from convcore.engine.layers.windows import pool_axes
from convcore.engine.runtime.checks import Array, check_memory
from convcore.engine.runtime.layout import is_channels_last
from convcore.engine.runtime.tables import kept_tables

# Maximum taps along an axis (outputs times window length) for which tables are created: they take
# 16 bytes per tap.  Beyond, sums are computed from sums of powers of two.
_MAX_TAPS = 1 << 22


def avg_pool(
    input: Array,
    kernel_size: Spatial,
    stride: Spatial | None = None,
    padding: Spatial = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """Compute the mean of the elements under every window.

    output[n, c, j] = sum over t of input[n, c, j*stride - padding + t] / count[j], padding being 0.

    Parameters
    ----------
    input : (N, C, *sizes) or (C, *sizes); float16, float32 or float64
        One to three spatial axes; any strides.  N may be 0.
    kernel_size, stride, padding, ceil_mode
        As for `max_pool`.
    count_include_pad : bool
        Whether count includes the padding under a window.  Positions beyond the padding (see
        ceil_mode) never count.
    divisor_override : int, optional
        Divide by this value instead; not 0.

    Returns
    -------
    (N, C, *outs) or (C, *outs), of the input's dtype
        channels_last if the input is, else contiguous.

    Raises
    ------
    TypeError, ValueError
        The message names the argument, its value and what is allowed.

    Notes
    -----
    Sums axis by axis: fewer additions per output than the product of the kernel's sizes.  float16
    is summed in float32 and rounded once.

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
    return avg_pool_maps(
        input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )[0](input)


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
    """Compute the gradient of `avg_pool`: every mean is expanded over its elements (the adjoint).

    grad_input[n, c, i] = sum over the windows j that cover i of grad_output[n, c, j] / count[j].

    Parameters
    ----------
    grad_output : (N, C, *outs) or (C, *outs); float16, float32 or float64
    input_size : one int per spatial axis
        The spatial sizes of `avg_pool`'s input.
    kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
        As for `avg_pool`.

    Returns
    -------
    (N, C, *input_size) or (C, *input_size), of grad_output's dtype
        channels_last if grad_output is, else contiguous.

    Raises
    ------
    TypeError, ValueError
        As `avg_pool`; also if grad_output does not have the shape of its output.

    Examples
    --------
    >>> import numpy as np
    >>> avg_pool_grad(np.array([[4.0, 8.0]]), (5,), 2).tolist()
    [[2.0, 2.0, 4.0, 4.0, 0.0]]
    """
    sizes = checked_sizes("input_size", input_size, least=0)
    batch, _, _ = as_batch("grad_output", grad_output, "input_size", sizes, FLOATS)
    kernel = per_axis("kernel_size", kernel_size, len(sizes))
    ceil, include, override = _checked_options(ceil_mode, count_include_pad, divisor_override)
    axes = pool_axes(batch.shape[1], sizes, kernel, stride, padding, ceil_mode=ceil)
    outs = output_sizes(axes)
    if batch.shape[2:] != outs:
        raise ValueError(
            f"grad_output must have the sizes of the pool's output, {list(outs)}, "
            f"got {list(batch.shape[2:])}"
        )
    return _regular(axes, include, override, batch.dtype, True)(grad_output)


def avg_pool_maps(input: Array, *steps: Any) -> tuple[Map, Map]:
    """Return (`avg_pool`, `avg_pool_grad`) for arrays of this shape and dtype.

    steps : all other arguments of `avg_pool`
    """
    batch, _, axes, *options = _checked_steps(input, *steps)
    made = [_regular(axes, *options, batch.dtype, back) for back in (False, True)]
    return made[0], made[1]


def adaptive_avg_pool(input: Array, output_size: Spatial) -> Array:
    """Compute the mean of each of ``output_size`` windows per axis.

    Window i of an axis is [floor(i*size/out), ceil((i+1)*size/out)).

    Parameters
    ----------
    input : as for `avg_pool`
    output_size : int, or one int per spatial axis
        Like kernel_size of `avg_pool`; may be 0.

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
    if batch.size and 0 not in outs:
        means = _adaptive_map(batch, batch.shape[2:], outs, False)(batch)
    else:
        (means,) = empty_results(batch, outs, batch.dtype)
    return means[0] if unbatched else means


def adaptive_avg_pool_grad(grad_output: Array, input_size: Sequence[int]) -> Array:
    """Compute the gradient of `adaptive_avg_pool`: every mean is expanded over its window.

    Parameters
    ----------
    grad_output : (N, C, *outs) or (C, *outs); float16, float32 or float64
    input_size : one int per spatial axis
        The spatial sizes of `adaptive_avg_pool`'s input.

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
    if batch.size:
        check_memory((*batch.shape[:2], *sizes), batch.itemsize)
        grads = _adaptive_map(batch, sizes, outs, True)(batch)
    else:
        (grads,) = empty_results(batch, sizes, batch.dtype)
        grads[...] = 0
    return grads[0] if unbatched else grads


def _checked_steps(
    input: Any,
    kernel_size: Spatial,
    stride: Spatial | None,
    padding: Spatial,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> tuple[Array, bool, tuple[Axis, ...], bool, int | None]:
    """Return (batched input, whether it was unbatched, the pool's axes, the two options)."""
    batch, unbatched, kernel = as_batch("input", input, "kernel_size", kernel_size, FLOATS)
    check_planes(batch, unbatched)
    ceil, include, override = _checked_options(ceil_mode, count_include_pad, divisor_override)
    axes = pool_axes(batch.shape[1], batch.shape[2:], kernel, stride, padding, ceil_mode=ceil)
    return batch, unbatched, axes, include, override


def _checked_options(ceil: Any, include: Any, override: Any) -> tuple[bool, bool, int | None]:
    ceil, include = checked_flag("ceil_mode", ceil), checked_flag("count_include_pad", include)
    if override is None:
        return ceil, include, None
    divisor = index("divisor_override", override)
    if divisor == 0:
        raise ValueError("divisor must be not zero: divisor_override is 0")
    if not -(2**63) <= divisor < 2**63:
        raise ValueError(f"divisor_override must be an int of 64 bits, got {divisor}")
    return ceil, include, divisor


@kept_tables
def _regular(
    axes: tuple[Axis, ...],
    include_pad: bool,
    override: int | None,
    dtype: np.dtype[Any],
    back: bool,
) -> SeparableMap | LongWindows:
    """Return the map to means of windows at a stride, or its adjoint."""
    windows = []
    for a in axes:
        pad = a.before if include_pad else 0
        start = np.arange(a.out) * a.stride - a.before
        end = start + a.kernel
        counts = np.minimum(end, a.size + pad) - np.maximum(start, -pad)
        windows.append((a.size, np.maximum(start, 0), np.minimum(end, a.size), counts))
    if any(a.out * a.kernel > _MAX_TAPS for a in axes):
        divisors: list[np.ndarray] = [
            np.ones(len(each[-1])) if override is not None else each[-1] for each in windows
        ]
        return LongWindows(axes, divisors, 1.0 if override is None else override, dtype, back)
    return _averaging(windows, override, dtype, back)


@kept_tables
def _adaptive(
    sizes: tuple[int, ...], outs: tuple[int, ...], dtype: np.dtype[Any], back: bool
) -> SeparableMap:
    """Return the map to means of ``outs`` windows that partition ``sizes``, or its adjoint."""
    windows = []
    for size, out in zip(sizes, outs, strict=True):
        parts = np.arange(out)
        start, end = parts * size // out, -(-(parts + 1) * size // out)
        windows.append((size, start, end, end - start))
    return _averaging(windows, None, dtype, back)


def _averaging(
    windows: list[tuple[int, Array, Array, Array]],
    override: int | None,
    dtype: np.dtype[Any],
    back: bool,
) -> SeparableMap:
    """Return the map to means, or its adjoint, from (size, starts, ends, counts) of each axis.

    Equal counts become one divisor of all sums.  Others divide the sums along their axis; in the
    adjoint they become weights.
    """
    axes, divisor = [], 1.0 if override is None else override
    for size, start, end, counts in windows:
        weights = window_weights(size, start, end)
        if override is None and (counts == counts[0]).all():
            # As float: three large kernels cover more elements than an int64 can count.
            divisor *= float(counts[0])
        elif override is None and back:
            each = np.repeat(counts, np.diff(weights.begin))
            weights = weights._replace(weight=weights.weight / each)
        elif override is None:
            weights = weights._replace(divisor=counts)
        axes.append(weights.adjoint() if back else weights)
    return SeparableMap(axes, dtype, divisor)


def _adaptive_map(
    batch: Array, sizes: tuple[int, ...], outs: tuple[int, ...], back: bool
) -> Callable[[Array], Array]:
    """Return the map for an array's layout; means of whole planes are computed as one long line."""
    if set(outs) == {1} and not back:
        return global_avg_pool
    if set(outs) != {1} or is_channels_last(batch.shape, batch.strides):
        return _adaptive(sizes, outs, batch.dtype, back)
    line = _adaptive((math.prod(sizes),), (1,), batch.dtype, back)
    n, c = batch.shape[:2]
    results = sizes if back else outs
    return lambda planes: line(planes.reshape(n, c, -1)).reshape(n, c, *results)
