"""Max and average pooling, and their adaptive forms.

Once the elements are chosen, pooling is linear: its gradient is a function of this file too, whose
gradient is the first again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from convcore import engine
from convcore._tensor import Tensor, wrap
from convcore._tensor.meta import MetaArray
from convcore.autograd.grad_mode import mode
from convcore.autograd.node import describe, record
from convcore.engine.geometry import index, indices, is_sequence
from convcore.engine.layers.pooling.avg_pooling import avg_pool_maps
from convcore.engine.layers.pooling.global_avg_pooling import global_avg_pool
from convcore.engine.layers.pooling.max_pooling import (
    LongMaxPool,
    MaxPool,
    adaptive_max_pool_of,
    max_pool_of,
)
from convcore.functions._support.arguments import check_kind, check_tensor, computed
from convcore.functions._support.dispatch import flat_in, later_place_of
from convcore.functions._support.errstate import ignore_errstate
from convcore.functions._support.kept import kept
from convcore.functions._support.linear_map import Linear, linear_map
from convcore.functions.elementwise.in_float32 import in_float32

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
]

Ints = tuple[int, ...]
COUNTS = {1: "one int", 2: "two ints", 3: "three ints"}


def _max_pool(
    rank: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    return_indices: bool,
) -> Any:
    function = f"max_pool{rank}d"
    check_tensor(function, input)
    check_kind(function, input, "fiu")
    steps = (kernel_size, stride, padding, dilation, ceil_mode)
    steps, pool, may_be_padding = _maxima(input._array, rank, *steps)
    name = f"MaxPool{rank}DWithIndices"
    volume = _channels_last_volume(input._array) if rank == 3 else None
    if pool is not None and not return_indices and volume is None:
        output = _by_taps(name, input, pool)
        describe(output, pool=pool, may_be_padding=may_be_padding)
        return output
    if volume is not None:
        values, indices = (found[0] for found in computed(engine.max_pool, volume, *steps))
    else:
        values, indices = computed(engine.max_pool, input._array, *steps)
    return _picked(name, rank, input, values, indices, return_indices)


def _channels_last_volume(array: np.ndarray) -> np.ndarray | None:
    """Return a channels_last (C, D, H, W) array as a batch of one, None for others.

    Max pooling of such volumes alone keeps the format without a batch, as in PyTorch.
    """
    if array.ndim != 4 or isinstance(array, MetaArray) or array.flags.c_contiguous:
        return None
    if not np.moveaxis(array, 0, -1).flags.c_contiguous:
        return None
    return np.lib.stride_tricks.as_strided(array, (1, *array.shape), (array.nbytes, *array.strides))


@kept
def _maxima(
    array: np.ndarray,
    rank: int,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
) -> tuple[tuple, MaxPool | LongMaxPool | None, bool]:
    """Return (steps, the pool that saves taps if there is one, whether a tap may be padding)."""
    function = f"max_pool{rank}d"
    kernel = ints_per_axis(function, "kernel_size", kernel_size, rank)
    strides = _stride(function, stride, rank)
    pads = ints_per_axis(function, "padding", padding, rank)
    dilations = ints_per_axis(function, "dilation", dilation, rank)
    steps = (kernel, strides, pads, dilations, bool(ceil_mode))
    # Only a dilated window can lie in the padding with all its taps.
    may_be_padding = any(p and d > 1 for p, d in zip(pads, dilations, strict=True))
    return steps, computed(max_pool_of, array, *steps), may_be_padding


@in_float32
def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest element under every window of (N, C, W) or (C, W); see `max_pool2d`."""
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@in_float32
def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest element under every window (max pooling).

    Of equal elements the first counts, and it alone gets the gradient.  NaN is larger than all.

    Parameters
    ----------
    input : (N, C, H, W) or (C, H, W), floating or, without gradient, integers
    kernel_size : int, or (KH, KW)
    stride : int, or (SH, SW)
        kernel_size if not given.
    padding : int, or one a side of each axis
        Of -inf; at most half of what the kernel spans.
    dilation : int, or (DH, DW)
    ceil_mode : bool
        Add a window where the last stride leaves elements over.
    return_indices : bool

    Returns
    -------
    (N, C, OH, OW) or (C, OH, OW)
        If return_indices, a tuple with the int64 indices of the elements in their planes; -1 for a
        dilated window over nothing but padding.

    Raises
    ------
    TypeError
        A parameter is no int and no sequence of ints.
    RuntimeError
        A parameter out of its range; no window fits; an empty image.
    NotImplementedError
        The dtype has no order.

    Examples
    --------
    >>> import convcore
    >>> max_pool2d(convcore.tensor([[[1.0, 2.0], [4.0, 3.0]]]), 2)
    tensor([[[4.]]])
    """
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@in_float32
def max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest element under every window of (N, C, D, H, W); see `max_pool2d`."""
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def _differentiated(input: Tensor) -> bool:
    """Return whether an operation on the tensor is recorded."""
    return mode.enabled and input.requires_grad


def _by_taps(name: str, input: Tensor, pool: MaxPool | LongMaxPool) -> Tensor:
    """Return, recorded, maxima that save taps, an eighth of the memory of indices."""
    values, taps = computed(pool.forward, input._array, _differentiated(input))
    output = wrap(values)
    if taps is not None:
        place = later_place_of(input)
        record(
            f"{name}Backward0",
            (input,),
            output,
            lambda needs, grad, taps: flat_in(_put_back(name, grad, taps, pool), place),
            (wrap(taps),),
        )
    return output


def _put_back(name: str, grad: Tensor, taps: Tensor, pool: MaxPool | LongMaxPool) -> Tensor:
    """Return the input gradient: gradients at the maxima, zeros elsewhere."""
    if name.startswith("Adaptive"):
        _check_not_empty(f"adaptive_max_pool{name[-2]}d_backward", grad, int(name[-2]))
    planes = wrap(computed(pool.gradient, grad._array, taps._array))
    record(
        f"{name}BackwardBackward0",
        (grad,),
        planes,
        lambda needs, grad, taps: _gather(name, grad, wrap(pool.indices(taps._array)), pool.sizes),
        (taps,),
    )
    return planes


def _picked(
    name: str,
    rank: int,
    input: Tensor,
    values: np.ndarray,
    indices: np.ndarray,
    return_indices: bool,
) -> Any:
    """Wrap and record max pooling that saves indices."""
    output, places = wrap(values), wrap(indices)
    sizes = input._array.shape[-rank:]
    place = later_place_of(input)
    record(
        f"{name}Backward0",
        (input,),
        output,
        lambda needs, grad, places: flat_in(_scatter(name, grad, places, sizes), place),
        (places,),
    )
    return (output, places) if return_indices else output


def _scatter(name: str, values: Tensor, places: Tensor, sizes: Ints) -> Tensor:
    """Return planes of zeros with the values at their indices."""
    if name.startswith("Adaptive"):
        _check_not_empty(f"adaptive_max_pool{name[-2]}d_backward", values, int(name[-2]))
    forward, adjoint = _pixel_maps(sizes)
    return linear_map(values, forward, adjoint, (f"{name}Backward", "Gather"), saved=(places,))


def _gather(name: str, planes: Tensor, places: Tensor, sizes: Ints) -> Tensor:
    """Take the elements of planes at places."""
    adjoint, forward = _pixel_maps(sizes)
    return linear_map(planes, forward, adjoint, ("Gather", f"{name}Backward"), saved=(places,))


def _pixel_maps(sizes: Ints) -> tuple[Callable, Callable]:
    return partial(engine.scatter_pixels, input_size=sizes), partial(
        engine.gather_pixels, rank=len(sizes)
    )


@in_float32
def avg_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Return the mean element under every window of (N, C, W) or (C, W); see `avg_pool2d`."""
    return _avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def _avg_pool(
    rank: int,
    input: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    function = f"avg_pool{rank}d"
    check_tensor(function, input)
    check_kind(function, input, "f")
    steps = (kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
    return linear_map(input, *_means(input._array, rank, *steps), described=True)


@in_float32
def avg_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the mean element under every window (average pooling).

    Parameters
    ----------
    input : (N, C, H, W) or (C, H, W), floating
    kernel_size, stride, padding, ceil_mode
        As for `max_pool2d`, but padding is of zeros.
    count_include_pad : bool
        Whether the zeros of the padding count as elements.
    divisor_override : int, optional
        Divide every sum by this instead of by its number of elements.

    Returns
    -------
    (N, C, OH, OW) or (C, OH, OW)

    Raises
    ------
    TypeError, RuntimeError, NotImplementedError
        As `max_pool2d`; also if divisor_override is 0.

    Examples
    --------
    >>> import convcore
    >>> avg_pool2d(convcore.tensor([[[1.0, 2.0], [4.0, 3.0]]]), 2)
    tensor([[[2.5000]]])
    """
    return _avg_pool(
        2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


@in_float32
def avg_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the mean element under every window of (N, C, D, H, W); see `avg_pool2d`."""
    return _avg_pool(
        3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


@kept
def _means(
    array: np.ndarray,
    rank: int,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Linear:
    function = f"avg_pool{rank}d"
    kernel = ints_per_axis(function, "kernel_size", kernel_size, rank)
    steps = _stride(function, stride, rank), ints_per_axis(function, "padding", padding, rank)
    options = bool(ceil_mode), bool(count_include_pad), divisor_override
    name = f"AvgPool{rank}D"
    forward, adjoint = computed(avg_pool_maps, array, kernel, *steps, *options)
    return Linear(forward, adjoint, (name, f"{name}Backward"), flat=True)


def _adaptive_avg_pool(rank: int, input: Tensor, output_size: Any) -> Tensor:
    function = f"adaptive_avg_pool{rank}d"
    check_tensor(function, input)
    check_kind(function, input, "f")
    outs = _output_size(function, output_size, input, rank)
    return _adaptive_mean(rank, input, outs)


@in_float32
def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """Return means of (N, C, W) or (C, W) over output_size windows; see `adaptive_avg_pool2d`."""
    return _adaptive_avg_pool(1, input, output_size)


@in_float32
def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Return the means of the windows that cut each axis into output_size parts.

    Part i of H rows is [floor(i*H/OH), ceil((i+1)*H/OH)); neighbours share a row where OH does not
    divide H.

    Parameters
    ----------
    input : (N, C, H, W) or (C, H, W), floating
    output_size : int, or (OH, OW)
        None keeps the size of that axis.

    Returns
    -------
    (N, C, OH, OW) or (C, OH, OW)

    Raises
    ------
    TypeError, RuntimeError, NotImplementedError
        As `avg_pool2d`; a negative output_size.

    Examples
    --------
    >>> import convcore
    >>> adaptive_avg_pool2d(convcore.tensor([[[1.0, 2.0, 6.0]]]), (1, 2))
    tensor([[[1.5000, 4.0000]]])
    """
    return _adaptive_avg_pool(2, input, output_size)


@in_float32
def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Return means of (N, C, D, H, W) over output_size windows; see `adaptive_avg_pool2d`."""
    return _adaptive_avg_pool(3, input, output_size)


def _adaptive_mean(rank: int, input: Tensor, outs: Ints) -> Tensor:
    array = input._array
    one = set(outs) == {1}
    if one and array.size and array.ndim == rank + 2:
        output = wrap(ignore_errstate(global_avg_pool, array))
    else:
        output = wrap(computed(engine.adaptive_avg_pool, array, outs))
    sizes = array.shape[-rank:]
    # One window is the mean over the axes, and PyTorch computes and calls it that.
    name = "MeanBackward1" if one else f"AdaptiveAvgPool{rank}DBackward0"
    place = later_place_of(input) if mode.enabled and not one else None

    def backward(needs: tuple[bool, ...], grad: Tensor) -> Tensor:
        result = _adaptive_mean_grad(rank, grad, sizes)
        return result if place is None else flat_in(result, place)

    record(name, (input,), output, backward)
    axes = tuple(range(input._array.ndim - rank, input._array.ndim))
    describe(
        output, forward=lambda array: engine.adaptive_avg_pool(array, outs), dim=axes, keepdim=True
    )
    return output


def _check_not_empty(function: str, grad: Tensor, rank: int) -> None:
    """Raise where backward has no elements to take gradients from, as in PyTorch."""
    shape = grad._array.shape
    if 0 in shape[-rank:]:
        raise RuntimeError(
            f"{function}(): Expected grad_output to have non-zero size for non-batch dimensions, "
            f"but grad_output has sizes {list(shape)} with dimension "
            f"{shape.index(0, len(shape) - rank)} being empty"
        )


def _adaptive_mean_grad(rank: int, grad: Tensor, sizes: Ints) -> Tensor:
    _check_not_empty(f"adaptive_avg_pool{rank}d_backward", grad, rank)
    output = wrap(computed(engine.adaptive_avg_pool_grad, grad._array, sizes))
    outs = grad._array.shape[-rank:]
    record(
        f"AdaptiveAvgPool{rank}DBackwardBackward0",
        (grad,),
        output,
        lambda needs, grad: _adaptive_mean(rank, grad, outs),
    )
    return output


def _adaptive_max_pool(rank: int, input: Tensor, output_size: Any, return_indices: bool) -> Any:
    function = f"adaptive_max_pool{rank}d"
    check_tensor(function, input)
    check_kind(function, input, "f")
    outs = _output_size(function, output_size, input, rank)
    name = f"AdaptiveMaxPool{rank}D"
    if 0 in input._array.shape[1:]:
        shape = input._array.shape
        raise RuntimeError(
            f"{function}(): Expected input to have non-zero size for non-batch dimensions, but "
            f"input has sizes {list(shape)} with dimension {shape.index(0, 1)} being empty"
        )
    if not return_indices:
        pool = computed(adaptive_max_pool_of, input._array, outs)
        if pool is not None:
            return _by_taps(name, input, pool)
    values, indices = computed(engine.adaptive_max_pool, input._array, outs)
    return _picked(name, rank, input, values, indices, return_indices)


@in_float32
def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Return maxima of (N, C, W) or (C, W) over output_size windows; see `adaptive_max_pool2d`."""
    return _adaptive_max_pool(1, input, output_size, return_indices)


@in_float32
def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Return the largest element of each window that cuts each axis into output_size parts.

    Parameters
    ----------
    input, output_size
        As for `adaptive_avg_pool2d`.
    return_indices : bool

    Returns
    -------
    (N, C, OH, OW) or (C, OH, OW)
        If return_indices, a tuple with the int64 indices of the elements in their planes.

    Raises
    ------
    TypeError, RuntimeError, NotImplementedError
        As `adaptive_avg_pool2d`.

    Examples
    --------
    >>> import convcore
    >>> adaptive_max_pool2d(convcore.tensor([[[1.0, 2.0, 6.0]]]), (1, 2))
    tensor([[[2., 6.]]])
    """
    return _adaptive_max_pool(2, input, output_size, return_indices)


@in_float32
def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Return maxima of (N, C, D, H, W) over output_size windows; see `adaptive_max_pool2d`."""
    return _adaptive_max_pool(3, input, output_size, return_indices)


def ints_per_axis(function: str, name: str, value: Any, rank: int, omitted: str = "") -> Ints:
    """Return one int an axis, from an int or a sequence of one or ``rank`` ints."""
    if type(value) is int:
        return (value,) * rank
    values = tuple(value) if is_sequence(value) else (value,)
    if len(values) not in (1, rank):
        raise RuntimeError(
            f"{function}: {name} must either be {omitted}a single int, or a tuple of {COUNTS[rank]}"
        )
    return indices(name, values) * (rank if len(values) == 1 else 1)


def _stride(function: str, value: Any, rank: int) -> Ints | None:
    """Return one int an axis, or None, which the kernel's size stands in for."""
    if value is None or (type(value) is not int and is_sequence(value) and len(value) == 0):
        return None
    return ints_per_axis(function, "stride", value, rank, "omitted, ")


def _output_size(function: str, value: Any, input: Tensor, rank: int) -> Ints:
    """Return the output's sizes, None being the input's."""
    if value is None:
        raise TypeError(
            f"{function}(): argument 'output_size' (position 2) must be int or tuple of ints, not "
            "NoneType"
        )
    values = tuple(value) if is_sequence(value) else (value,) * rank
    if len(values) != rank:
        raise RuntimeError(f"{function}: output_size must be {rank}")
    shape = input._array.shape
    if len(shape) not in (rank + 1, rank + 2):
        raise RuntimeError(
            f"{function}(): Expected {rank + 1}D or {rank + 2}D tensor, but got {list(shape)}"
        )
    return tuple(
        size if v is None else index("output_size", v)
        for v, size in zip(values, shape[-rank:], strict=True)
    )
