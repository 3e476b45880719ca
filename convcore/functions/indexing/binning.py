"""Binning: searchsorted, bucketize, histc; and runs of equal elements (unique_consecutive)."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, wrap
from convcore._tensor.creation.arguments import checked_int
from convcore._tensor.dtype_names import scalar_name
from convcore._tensor.dtypes import common
from convcore.autograd.node import record_without_derivative
from convcore.engine.runtime.checks import plain
from convcore.functions._support.arguments import check_arguments, check_kind, check_tensor, number
from convcore.functions._support.axes import wrap_dim
from convcore.functions._support.sorting import sortable
from convcore.functions.elementwise.arithmetic import operand
from convcore.functions.elementwise.in_float32 import in_float32

__all__ = ["bucketize", "histc", "searchsorted", "unique_consecutive"]


@names_arguments
def searchsorted(
    sorted_sequence: Tensor,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Return where each number would have to be inserted in a sorted sequence.

    Parameters
    ----------
    sorted_sequence : (N,), or (*sizes, N), in ascending order along the last axis
    input : Tensor or number; (*sizes, M) unless the sequence is a vector
    out_int32 : bool
        Return int32, not int64.
    right : bool, or ``side`` 'left' or 'right'
        Whether equal numbers are passed by.
    sorter : Tensor of int64, or None
        The order that sorts the sequence, if it is not sorted.

    Raises
    ------
    RuntimeError
        The sizes do not fit together.

    Examples
    --------
    >>> import convcore
    >>> convcore.searchsorted(convcore.tensor([1, 3, 5]), convcore.tensor([3, 6]))
    tensor([1, 3])
    """
    check_tensor("searchsorted", sorted_sequence)
    if side not in (None, "left", "right"):
        raise RuntimeError(
            f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}"
        )
    if side == "left" and right:
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left "
            "while right was True"
        )
    bounds, values = _in_one_dtype(sorted_sequence._array, input, "searchsorted()")
    if not values.ndim and bounds.ndim != 1:
        raise RuntimeError(
            "torch.searchsorted(): input value can be a scalar only when boundaries tensor "
            f"dimension is 1, but we got boundaries tensor dim({bounds.ndim}) and input value's "
            "dim(0) numel(1)"
        )
    if bounds.ndim != 1 and bounds.shape[:-1] != values.shape[:-1]:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 "
            "dimensions of boundaries tensor and input value tensor must match, but we got "
            f"boundaries tensor {list(bounds.shape)} and input value tensor {list(values.shape)}"
        )
    if not bounds.ndim:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should have at least 1 dimension, but it has 0"
        )
    if sorter is not None:
        bounds = np.take_along_axis(bounds, _order(sorter, bounds), -1)
    return _searched(bounds, values, "right" if right or side == "right" else "left", out_int32)


def bucketize(
    input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    """Return the number of the bucket between boundaries in which each number is.

    Parameters
    ----------
    input : Tensor or number
    boundaries : vector, in ascending order
    out_int32 : bool
        Return int32, not int64.
    right : bool
        Whether a bucket holds its left boundary, and not its right one.
    """
    check_arguments("bucketize", boundaries=boundaries)
    if boundaries._array.ndim != 1:
        raise RuntimeError(
            f"boundaries tensor must be 1 dimension, but got dim({boundaries._array.ndim})"
        )
    side = "right" if right else "left"
    bounds, values = _in_one_dtype(boundaries._array, input, "bucketize()")
    return _searched(bounds, values, side, out_int32)


def _in_one_dtype(bounds: np.ndarray, value: Any, function: str) -> tuple[np.ndarray, np.ndarray]:
    """Return arrays of what both promote to; NotImplementedError where that has no order."""
    value = operand(value, function)
    value = value._array if isinstance(value, Tensor) else value
    dtype = common(bounds, value)
    if dtype.kind in "bc":
        raise NotImplementedError(
            f"\"searchsorted_out_cpu\" not implemented for '{scalar_name(dtype)}'"
        )
    return plain(bounds).astype(dtype, copy=False), plain(np.asarray(value)).astype(
        dtype, copy=False
    )


def _order(sorter: Tensor, bounds: np.ndarray) -> np.ndarray:
    """Return the array of a sorter; RuntimeError if it cannot be one of these bounds."""
    order = plain(sorter._array)
    if order.shape != bounds.shape:
        raise RuntimeError(
            "torch.searchsorted(): boundary and sorter must have the same size, but got boundary "
            f"tensor {list(bounds.shape)}and got sorter tensor {list(order.shape)}"
        )
    if order.dtype != np.int64:
        raise RuntimeError(
            "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype "
            f"{scalar_name(order.dtype)}"
        )
    if order.size and not 0 <= order.min() <= order.max() < bounds.shape[-1]:
        raise RuntimeError("torch.searchsorted(): sorter index out of range")
    return order


def _searched(bounds: np.ndarray, values: np.ndarray, side: Any, out_int32: bool) -> Tensor:
    found = _found(sortable(bounds), sortable(values), side)
    return wrap(np.asarray(found, np.int32 if out_int32 else np.int64))


def _found(bounds: np.ndarray, values: np.ndarray, side: Any) -> np.ndarray:
    if bounds.ndim > 1 and values.shape[-1] >= _MANY:
        rows = [_found(bounds[at], values[at], side) for at in np.ndindex(values.shape[:-1])]
        return np.reshape(rows, values.shape)
    if bounds.ndim == 1 and values.size <= _FEW:
        places = [_place(bounds, value, side) for value in values.ravel().tolist()]
        return np.reshape(places, values.shape)
    if bounds.ndim == 1 and _ascends(bounds):
        return np.searchsorted(bounds, values, side)
    return _places(bounds, values, side)


# Values that are searched for one by one, in 0.15 us a step; a step for all of an array takes 4 us,
# and to see that bounds are in order, for NumPy to search them, 3 us and more.  And values of a row
# for which that pays in each row.
_FEW, _MANY = 16, 1024

# PyTorch halves what is left, whatever the order is, and goes right unless the bound in the middle
# is as large as the value (or larger): so past NaN.  NumPy takes NaN for the largest number, and
# begins where the value before ended, which is the same in ascending bounds without NaN.


def _ascends(bounds: np.ndarray) -> bool:
    """Return whether a vector is in order, and has no NaN."""
    return bool((bounds[:-1] <= bounds[1:]).all() and (bounds[-1:] == bounds[-1:]).all())


def _place(bounds: np.ndarray, value: Any, side: str) -> int:
    """Return the place of a number in a vector."""
    stops = operator.ge if side == "left" else operator.gt
    low, high = 0, len(bounds)
    while low < high:
        middle = (low + high) >> 1
        if stops(bounds.item(middle), value):
            high = middle
        else:
            low = middle + 1
    return low


def _places(bounds: np.ndarray, values: np.ndarray, side: str) -> np.ndarray:
    """Return the places of all values in a vector, or of each row in its own bounds."""
    stops = np.greater_equal if side == "left" else np.greater
    low = np.zeros(values.shape, np.int64)
    high = np.full(values.shape, bounds.shape[-1])
    for _ in range(bounds.shape[-1].bit_length()):
        middle = (low + high) >> 1
        inside = np.minimum(middle, bounds.shape[-1] - 1)
        found = bounds[inside] if bounds.ndim == 1 else np.take_along_axis(bounds, inside, -1)
        stopped = stops(found, values)
        # Where nothing is left, the middle is low and high.
        low = np.where(stopped | (low == high), low, middle + 1)
        high = np.where(stopped, middle, high)
    return low


@in_float32
def histc(input: Tensor, bins: int = 100, min: Any = 0, max: Any = 0) -> Tensor:
    """Count the elements in equal bins from ``min`` to ``max``; from end to end if both are 0.

    Parameters
    ----------
    input : Tensor of a floating-point dtype
    bins : int
    min, max : numbers
        What lies outside, and NaN, is not counted.

    Raises
    ------
    RuntimeError
        No bins, or a range that is not finite or runs backwards.
    """
    check_tensor("histc", input)
    min, max = number("histc", "min", min), number("histc", "max", max)
    if min > max:
        raise RuntimeError("torch.histc: max must be larger than min")
    check_kind("histogram_cpu", input, "f")
    array = input._array.reshape(-1)
    bins = checked_int("histc", "bins", bins)
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    low, high = float(min), float(max)
    if low == high and array.size:
        low, high = float(array.min()), float(array.max())
    if not (np.isfinite(low) and np.isfinite(high)):
        raise RuntimeError(f"torch.histc: range of [{low:g}, {high:g}] is not finite")
    if low == high:
        low, high = low - 1, high + 1
    count = np.histogram(array, np.linspace(low, high, bins + 1))[0]
    return wrap(count.astype(array.dtype))


@names_arguments
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Return one of each run of equal elements, in order.

    Parameters
    ----------
    input : Tensor
    return_inverse, return_counts : bool
        Return, besides, in which run each element is, and how long each run is.
    dim : int or None
        Compare the slices along this axis instead of the elements.
    """
    check_tensor("unique_consecutive", input)
    check_kind("unique" if dim is None else "unique_dim", input, "fiubV")
    array = input._array
    axis = 0 if dim is None else wrap_dim(dim, array.ndim)
    rows = array.reshape(-1) if dim is None else np.moveaxis(array, axis, 0)
    differ = rows[1:] != rows[:-1]
    changes = differ.any(axis=tuple(range(1, rows.ndim)))
    starts = np.flatnonzero(np.concatenate(([True], changes)))[: len(rows)]
    results = [wrap(np.moveaxis(rows[starts], 0, axis).copy())]
    record_without_derivative("unique_consecutive", (input,), results[0])
    if return_inverse:
        runs = np.concatenate(([0], np.cumsum(changes)))[: len(rows)].astype(np.int64)
        results.append(wrap(runs.reshape(array.shape) if dim is None else runs))
    if return_counts:
        results.append(wrap(np.diff(starts, append=len(rows)).astype(np.int64)))
    return tuple(results) if len(results) > 1 else results[0]


FUNCTIONS_ONLY = {"bucketize", "searchsorted"}
