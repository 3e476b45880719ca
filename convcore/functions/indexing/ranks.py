"""Elements by their rank along an axis: quantile and kthvalue."""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, wrap
from convcore.autograd.views import own
from convcore.engine.integers import as_int
from convcore.functions._support.arguments import check_kind, check_tensor, number
from convcore.functions._support.axes import wrap_dim
from convcore.functions._support.results import Picked
from convcore.functions.elementwise.in_float32 import in_float32
from convcore.functions.elementwise.ternary import lerp
from convcore.functions.indexing.order import _choose, _non_empty_axis, _return_type, sort
from convcore.functions.indexing.scatter import gather
from convcore.functions.shapes.broadcast import expand
from convcore.functions.shapes.shape import movedim, reshape, squeeze, unsqueeze

__all__ = ["kthvalue", "quantile"]

_KTHVALUE = _return_type("kthvalue", "values", "indices")


# The weight of the element above a place between two, and the place itself where one is taken.
_BETWEEN = {
    "linear": lambda rank: rank - np.floor(rank),
    "midpoint": lambda rank: (np.ceil(rank) - np.floor(rank)) / 2,
}
_TAKEN = {"lower": np.floor, "higher": np.ceil, "nearest": np.rint}


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
    check_tensor("quantile", input)
    chances = _chances(input, q)
    if interpolation not in _BETWEEN and interpolation not in _TAKEN:
        raise RuntimeError(
            "quantile() interpolation must be one of linear, lower, higher, midpoint or "
            f"nearest, but got {interpolation}"
        )
    rank = input._array.ndim
    axis = None if dim is None else wrap_dim(dim, rank)
    line = reshape(input, -1) if axis is None or not rank else movedim(input, axis, -1)
    ordered = sort(line, -1)[0]
    nan = np.isnan(line._array).sum(-1, keepdims=True)
    last = line._array.shape[-1] - 1
    places = np.where(nan, last, chances.reshape(-1) * last)
    if interpolation in _TAKEN:  # not by a weight of 0 or 1: beside an infinity that gives NaN
        found = _at(ordered, _TAKEN[interpolation](places))
    else:
        found = _between(ordered, places, _BETWEEN[interpolation](places))
    found = movedim(found, -1, 0)
    if keepdim and rank:
        kept = [*found._array.shape[:1], *(1,) * rank] if axis is None else None
        found = reshape(found, kept) if kept else unsqueeze(found, axis + 1)  # type: ignore
    return own(found if chances.ndim else squeeze(found, 0))


def _chances(x: Tensor, q: Any) -> np.ndarray:
    dtype = x._array.dtype
    if dtype.char not in "fd":
        raise RuntimeError("quantile() input tensor must be either float or double dtype")
    if isinstance(q, Tensor) and q._array.dtype != dtype:
        raise RuntimeError("quantile() q tensor must be same dtype as the input tensor")
    chances = q._array if isinstance(q, Tensor) else np.asarray(number("quantile", "q", q), dtype)
    if chances.ndim > 1:
        raise RuntimeError("quantile() q must be a scalar or 1D tensor")
    if not x._array.size:
        raise RuntimeError("quantile() input tensor must be non-empty")
    if not np.all((chances >= 0) & (chances <= 1)):
        if isinstance(q, Tensor):
            raise RuntimeError("quantile() q values must be in the range [0, 1]")
        raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q}")
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
