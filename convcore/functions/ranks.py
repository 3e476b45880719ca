"""Elements by their rank along an axis: quantiles, kthvalue, mode, running maxima and minima."""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, wrap
from convcore._tensor.meta import empty_beside
from convcore.autograd.views import own
from convcore.engine.integers import as_int
from convcore.engine.runtime.checks import plain
from convcore.functions._support.arguments import check_kind, check_tensor, number
from convcore.functions._support.axes import wrap_dim
from convcore.functions._support.results import Picked
from convcore.functions.broadcast import expand
from convcore.functions.convert import clone
from convcore.functions.in_float32 import in_float32
from convcore.functions.order import (
    _choose,
    _non_empty_axis,
    _return_type,
    _shared,
    sort,
    undefined,
)
from convcore.functions.scatter import gather
from convcore.functions.shape import movedim, reshape, squeeze, unsqueeze
from convcore.functions.ternary import lerp

__all__ = ["cummax", "cummin", "kthvalue", "mode", "msort", "nanmedian", "nanquantile", "quantile"]

_CUMMAX = _return_type("cummax", "values", "indices")
_CUMMIN = _return_type("cummin", "values", "indices")
_KTHVALUE = _return_type("kthvalue", "values", "indices")
_MODE = _return_type("mode", "values", "indices")
_NANMEDIAN = _return_type("nanmedian", "values", "indices")


@names_arguments
def quantile(
    input: Tensor,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """Return the quantiles of all elements, or along an axis; NaN where there is NaN.

    Parameters
    ----------
    input : Tensor of float32 or float64
    q : number from [0, 1], or vector of them in input's dtype
    dim : int, or None for all elements
    keepdim : bool
    interpolation : 'linear', 'lower', 'higher', 'midpoint' or 'nearest'
        What lies between two elements.

    Returns
    -------
    Tensor
        Of a vector ``q``, with a first axis for its elements.

    Raises
    ------
    RuntimeError
        Another dtype, no elements, or q outside [0, 1].

    Examples
    --------
    >>> import convcore
    >>> convcore.quantile(convcore.tensor([0.0, 1.0, 5.0]), 0.75)
    tensor(3.)
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation)


@names_arguments
def nanquantile(
    input: Tensor,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """Return the quantiles of the elements that are no NaN; the rest as for `quantile`."""
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation)


# The weight of the element above a place between two, and the place itself where one is taken.
_BETWEEN = {
    "linear": lambda rank: rank - np.floor(rank),
    "midpoint": lambda rank: (np.ceil(rank) - np.floor(rank)) / 2,
}
_TAKEN = {"lower": np.floor, "higher": np.ceil, "nearest": np.rint}


def _quantile(
    function: str, x: Tensor, q: Any, dim: int | None, keepdim: bool, interpolation: str
) -> Tensor:
    check_tensor(function, x)
    chances = _chances(function, x, q)
    if interpolation not in _BETWEEN and interpolation not in _TAKEN:
        raise RuntimeError(
            f"{function}() interpolation must be one of linear, lower, higher, midpoint or "
            f"nearest, but got {interpolation}"
        )
    rank = x._array.ndim
    axis = None if dim is None else wrap_dim(dim, rank)
    line = reshape(x, -1) if axis is None or not rank else movedim(x, axis, -1)
    ordered = sort(line, -1)[0]
    nan = np.isnan(line._array).sum(-1, keepdims=True)
    last = line._array.shape[-1] - 1
    if function == "quantile":
        places = np.where(nan, last, chances.reshape(-1) * last)
    else:
        places = np.maximum(chances.reshape(-1) * (last - nan), 0)
    if interpolation in _TAKEN:  # not by a weight of 0 or 1: beside an infinity that gives NaN
        found = _at(ordered, _TAKEN[interpolation](places))
    else:
        found = _between(ordered, places, _BETWEEN[interpolation](places))
    found = movedim(found, -1, 0)
    if keepdim and rank:
        kept = [*found._array.shape[:1], *(1,) * rank] if axis is None else None
        found = reshape(found, kept) if kept else unsqueeze(found, axis + 1)  # type: ignore
    return own(found if chances.ndim else squeeze(found, 0))


def _chances(function: str, x: Tensor, q: Any) -> np.ndarray:
    dtype = x._array.dtype
    if dtype.char not in "fd":
        raise RuntimeError(f"{function}() input tensor must be either float or double dtype")
    if isinstance(q, Tensor) and q._array.dtype != dtype:
        raise RuntimeError(f"{function}() q tensor must be same dtype as the input tensor")
    chances = q._array if isinstance(q, Tensor) else np.asarray(number(function, "q", q), dtype)
    if chances.ndim > 1:
        raise RuntimeError(f"{function}() q must be a scalar or 1D tensor")
    if not x._array.size:
        raise RuntimeError(f"{function}() input tensor must be non-empty")
    if not np.all((chances >= 0) & (chances <= 1)):
        if isinstance(q, Tensor):
            raise RuntimeError(f"{function}() q values must be in the range [0, 1]")
        raise RuntimeError(f"{function}() q must be in the range [0, 1] but got {q}")
    return chances


def _between(ordered: Tensor, places: np.ndarray, weight: np.ndarray) -> Tensor:
    """Return the elements at places along the last axis, interpolated by ``weight``."""
    low, high = (_at(ordered, part(places)) for part in (np.floor, np.ceil))
    weights = wrap(np.asarray(weight, ordered._array.dtype))
    return lerp(low, high, expand(weights, low._array.shape))


def _at(ordered: Tensor, places: np.ndarray) -> Tensor:
    """Return the elements at whole places along the last axis."""
    shape = (*ordered._array.shape[:-1], places.shape[-1])
    return gather(ordered, -1, wrap(np.broadcast_to(places.astype(np.int64), shape).copy()))


@in_float32
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Picked:
    """Return the k-th smallest element along an axis, counted from 1, as (values, indices).

    Raises
    ------
    RuntimeError
        The axis has fewer than ``k`` elements.
    """
    check_tensor("kthvalue", input)
    check_kind("kthvalue_cpu", input, "fiub")
    array = input._array
    along = _non_empty_axis("kthvalue", input, dim)
    k = as_int(k)
    if not 1 <= k <= (array.shape[along] if array.ndim else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {along}")
    index: Any = np.zeros((), np.int64)
    if array.ndim:
        index = np.take(np.argsort(array, axis=along, kind="stable"), [k - 1], axis=along)
    return _choose(_KTHVALUE, "KthvalueBackward0", input, index, along, keepdim)


@in_float32
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> Picked:
    """Return the most frequent element along an axis, the least of several, as (values, indices).

    The index is that of its last place.
    """
    check_tensor("mode", input)
    check_kind("mode_cpu", input, "fiub")
    array = input._array
    along = _non_empty_axis("mode", input, dim)
    if not array.ndim:
        return _choose(_MODE, "ModeBackward0", input, np.zeros((), np.int64), along, keepdim)
    order = np.argsort(array, axis=along, kind="stable")
    ordered = np.moveaxis(np.take_along_axis(array, order, along), along, -1)
    # How often an element has come in the sorted row so far: the most is at a run's last place.
    places = np.arange(ordered.shape[-1])
    starts = np.ones(ordered.shape, bool)
    starts[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    runs = places - np.maximum.accumulate(np.where(starts, places, 0), -1)
    last = np.expand_dims(np.argmax(runs, axis=-1), along)
    index = np.take_along_axis(order, last, along)
    return _choose(_MODE, "ModeBackward0", input, index, along, keepdim)


def msort(input: Tensor) -> Tensor:
    """Return the elements sorted along the first axis."""
    return sort(input, 0)[0]


@in_float32
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the median of the elements that are no NaN, the lower one of two.

    Along an axis it is returned with its index, as (values, indices).
    """
    check_tensor("nanmedian", input)
    check_kind("median_cpu" if dim is None else "median_out", input, "fiub")
    if dim is None:
        if not input._array.size:
            return wrap(undefined(plain(input._array).dtype))
        found = nanmedian(reshape(input.detach(), -1), 0)[0]
        return _shared("NanmedianBackward0", input, found._array)
    along = _non_empty_axis("nanmedian", input, dim)
    array = np.atleast_1d(input._array)
    known = np.sum(array == array, axis=along, keepdims=True)
    middle = np.maximum(known - 1, 0) // 2
    index = np.take_along_axis(np.argsort(array, axis=along, kind="stable"), middle, along)
    if not input._array.ndim:
        index = index.reshape(())
    return _choose(_NANMEDIAN, "NanmedianBackward1", input, index, along, keepdim)


@in_float32
def cummax(input: Tensor, dim: int) -> Picked:
    """Return the cumulative maxima along an axis, and their last indices, as (values, indices)."""
    return _running("cummax", _CUMMAX, np.maximum, input, dim)


@in_float32
def cummin(input: Tensor, dim: int) -> Picked:
    """Return the cumulative minima along an axis, and their last indices, as for `cummax`."""
    return _running("cummin", _CUMMIN, np.minimum, input, dim)


def _running(function: str, kind: Any, ufunc: np.ufunc, x: Tensor, dim: int) -> Any:
    check_tensor(function, x)
    check_kind(f"{function}_cpu", x, "fiub")
    array = x._array
    along = wrap_dim(dim, array.ndim)
    if not array.ndim or not array.size:
        index = empty_beside(array, array.shape, np.dtype(np.int64))
        index.fill(0)
        return kind(clone(x), wrap(index))
    best = ufunc.accumulate(array, along)
    places = np.arange(array.shape[along]).reshape(-1, *(1,) * (array.ndim - 1 - along))
    found = np.where((array == best) | (array != array), places, 0)
    index = wrap(np.maximum.accumulate(found, along).astype(np.int64))
    return kind(gather(x, along, index), index)
