"""Reductions of what several indices name (scatter_reduce, index_reduce), put, and *_scatter."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, contiguous_format, wrap
from convcore._tensor.dtypes import INEXACT
from convcore.autograd.grad_mode import mode
from convcore.autograd.node import record
from convcore.autograd.views import own
from convcore.engine.integers import as_int
from convcore.functions._support.arguments import check_arguments
from convcore.functions._support.errstate import ignore_errstate
from convcore.functions._support.in_place import in_place_methods
from convcore.functions.arithmetic import div, mul
from convcore.functions.broadcast import expand, fitted
from convcore.functions.convert import clone, contiguous, copied, store
from convcore.functions.index_along import _vector, other_shape
from convcore.functions.indexing import index_put
from convcore.functions.masked import masked_fill
from convcore.functions.piecewise import masked, where
from convcore.functions.scatter import (
    _checked_scatter,
    _grid_key,
    _scatter_add,
    corner,
    gather,
    scatter,
    scatter_add,
)
from convcore.functions.shape import reshape, wrap_dim
from convcore.functions.slicing import diagonal, select, slice_of
from convcore.functions.strided import as_strided

__all__ = [
    "as_strided_scatter",
    "diagonal_scatter",
    "index_reduce",
    "put",
    "scatter_reduce",
    "select_scatter",
    "slice_scatter",
]

_UFUNCS: dict[str, Any] = {"prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


@names_arguments
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Return a copy with the sum, product, mean ... of all elements that indices send to a place.

    Parameters
    ----------
    input : Tensor
    dim : int
    index : Tensor of int64 with as many axes; none is longer than src's, nor than input's apart
        from ``dim``
    src : Tensor of input's dtype
    reduce : 'sum', 'prod', 'mean', 'amax' or 'amin'
        Of several that are the largest or smallest, each gets an equal part of the gradient.
    include_self : bool
        Whether the element of ``input`` takes part.  Places that no index names keep it.

    Raises
    ------
    RuntimeError
        The shapes or dtypes do not fit together, or an index is out of bounds.

    Examples
    --------
    >>> import convcore
    >>> index, src = convcore.tensor([0, 0, 1]), convcore.tensor([1.0, 3.0, 5.0])
    >>> convcore.zeros(3).scatter_reduce(0, index, src, "amax")
    tensor([3., 5., 0.])
    """
    check_arguments("scatter_reduce", input=input, index=index, src=src)
    if reduce not in ("sum", "mean", *_UFUNCS):
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
        )
    if reduce in _UFUNCS:
        if not include_self:
            input = scatter(input, dim, index, value=_neutral(reduce, input._array.dtype))
        return _extreme_or_product(input, dim, index, src, reduce, include_self)
    start = input if include_self else scatter(input, dim, index, value=0)
    total = scatter_add(start, dim, index, src)
    if reduce == "sum":
        return total
    ones = wrap(np.ones(index._array.shape, np.int64))  # half precision counts to 256 or 2048
    count = np.full(input._array.shape, int(include_self), np.int64)
    count = scatter_add(wrap(count), dim, index, ones)._array
    rounding = None if total._array.dtype.kind in INEXACT else "floor"
    return div(total, wrap(np.maximum(count, 1)), rounding_mode=rounding)


def _neutral(reduce: str, dtype: np.dtype) -> Any:
    if reduce == "prod":
        return 1
    if dtype.kind in "fV":
        return -np.inf if reduce == "amax" else np.inf
    if dtype.kind == "b":
        return reduce == "amin"
    limits = np.iinfo(dtype)
    return int(limits.min if reduce == "amax" else limits.max)


def _extreme_or_product(
    x: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool = True
) -> Tensor:
    """Return the reduction; without self, x holds what leaves it as it is where an index names."""
    axis, places = _checked_scatter("scatter_reduce", x, dim, index, src)
    array = copied(x._array, x._array.dtype, contiguous_format)
    values = src._array[tuple([slice(size) for size in places.shape])]
    key = _grid_key(axis, np.atleast_1d(places))
    ignore_errstate(_UFUNCS[reduce].at, np.atleast_1d(array), key, np.atleast_1d(values))
    out = wrap(array)
    if mode.enabled:
        counts = None if include_self else _unnamed(array.shape, key)
        slopes = _product_slopes if reduce == "prod" else partial(_extreme_slopes, counts)
        shape = src._array.shape

        def backward(needs: tuple[bool, ...], grad: Tensor, *saved: Tensor) -> tuple:
            own, sent = slopes(grad, axis, *saved)
            return own if needs[0] else None, corner(sent, shape) if needs[1] else None

        saved = (index, x, _first(src, places.shape), out)
        record("ScatterReduceBackward0", (x, src), out, backward, saved)
    return out


def _first(src: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return the first elements along each axis, as many as there are indices."""
    for axis, size in enumerate(shape):
        if src._array.shape[axis] != size:
            src = slice_of(src, axis, 0, size)
    return src


def _unnamed(shape: tuple[int, ...], key: Any) -> np.ndarray:
    """Return whether no index names the element."""
    unnamed = np.ones(shape, bool)
    np.atleast_1d(unnamed)[key] = False
    return unnamed


def _same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return where two arrays are equal, or both NaN."""
    return np.asarray((a == b) | ((a != a) & (b != b)))


def _extreme_slopes(
    counts: np.ndarray | None,
    grad: Tensor,
    axis: int,
    index: Tensor,
    x: Tensor,
    src: Tensor,
    y: Tensor,
) -> Any:
    """Return the gradients of x and src; counts: which elements of x take part, None for all."""
    dtype = grad._array.dtype
    own = _same(x._array, y._array)
    if counts is not None:
        own &= counts
    sent = _same(src._array, gather(y, axis, index)._array)
    count = wrap(np.asarray(own, dtype))
    count = _scatter_add(count, axis, index, wrap(np.asarray(sent, dtype)), in_place=True)
    share = div(grad, wrap(np.maximum(count._array, 1)))
    return masked(share, own), masked(gather(share, axis, index), sent)


def _product_slopes(
    grad: Tensor, axis: int, index: Tensor, x: Tensor, src: Tensor, y: Tensor
) -> Any:
    others = masked_fill(x, wrap(np.asarray(x._array == 0)), 1)
    own = div(mul(grad, _extreme_or_product(others, axis, index, src, "prod")), others)
    # A single zero gets the product of the others; beside another zero nothing has a slope.
    zero = wrap(np.asarray(src._array == 0))
    count = np.zeros(x._array.shape, np.int64)
    zeros = scatter_add(wrap(count), axis, index, wrap(zero._array.astype(np.int64)))
    single = wrap(zero._array & (gather(zeros, axis, index)._array == 1))
    rest = _extreme_or_product(x, axis, index, masked_fill(src, single, 1), "prod")
    sent = div(gather(mul(grad, y), axis, index), masked_fill(src, zero, 1))
    return own, where(single, gather(mul(grad, rest), axis, index), sent)


@names_arguments
def index_reduce(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    """Return a copy where source[i] joins place index[i] of an axis by a product, mean, maximum ...

    Parameters
    ----------
    input : Tensor
    dim : int
    index : vector of int64 or int32
    source : Tensor of input's dtype, and shape apart from ``dim``
    reduce : 'prod', 'mean', 'amax' or 'amin'
    include_self : bool
        Whether the elements of ``input`` take part.
    """
    check_arguments("index_reduce", input=input, index=index, source=source)
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(
            "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got "
            f"{reduce}."
        )
    index = _vector("index_reduce", index)
    axis = wrap_dim(dim, input._array.ndim)
    if source._array.ndim != input._array.ndim:
        raise other_shape(input._array, source._array)
    sizes = [-1 if one == axis else 1 for one in range(source._array.ndim)]
    places = expand(reshape(index, sizes), source._array.shape) if sizes else reshape(index, ())
    return scatter_reduce(input, axis, places, source, reduce, include_self=include_self)


def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Return a copy with other values at indices into the flattened tensor.

    Parameters
    ----------
    input : Tensor
    index : Tensor of int64
    source : Tensor of input's dtype with as many elements
    accumulate : bool
        Add the values instead.
    """
    check_arguments("put", input=input, index=index, source=source)
    if index._array.size != source._array.size:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got "
            f"source.numel() = {source._array.size}, index.numel() = {index._array.size}"
        )
    flat = (reshape(index, -1),)
    values = index_put(reshape(input, -1), flat, reshape(source, -1), accumulate)
    return own(reshape(values, input._array.shape))


# A part of a copy replaced


def _replaced(name: str, x: Tensor, src: Tensor, part: Callable[[Tensor], Tensor]) -> Tensor:
    """Return a copy of ``x`` in which the view that ``part`` makes is ``src``."""
    array = copied(x._array, x._array.dtype, contiguous_format)
    place = part(wrap(array))._array
    if place.shape != src._array.shape:
        raise RuntimeError(
            "expected src to have a size equal to the slice of self. "
            f"src size = {list(src._array.shape)}, slice size = {list(place.shape)}"
        )
    store(place, src._array)
    out = wrap(array)

    def backward(needs: tuple[bool, ...], grad: Tensor) -> tuple:
        nothing = wrap(np.zeros(place.shape, grad._array.dtype))
        rest = _replaced(name, grad, nothing, part) if needs[0] else None
        return rest, clone(part(grad)) if needs[1] else None

    record(name, (x, src), out, fitted(backward, x, src))
    return out


@names_arguments
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """Return a copy in which `select` of an axis and an index gives ``src``."""
    check_arguments("select_scatter", input=input, src=src)
    return _replaced("SelectScatterBackward0", input, src, lambda x: select(x, dim, index))


@names_arguments
def slice_scatter(
    input: Tensor,
    src: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    """Return a copy in which the slice start:end:step of an axis is ``src``."""
    check_arguments("slice_scatter", input=input, src=src)
    axis = wrap_dim(dim, input._array.ndim)
    first, last, _ = slice(start, end).indices(input._array.shape[axis])
    part = lambda x: slice_of(x, axis, first, max(first, last), as_int(step))  # noqa: E731
    return _replaced("SliceScatterBackward0", input, src, part)


@names_arguments
def diagonal_scatter(
    input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """Return a copy in which `diagonal` of the other arguments gives ``src``."""
    check_arguments("diagonal_scatter", input=input, src=src)
    part = lambda x: diagonal(x, offset, dim1, dim2)  # noqa: E731
    return _replaced("DiagonalScatterBackward0", input, src, part)


@names_arguments
def as_strided_scatter(
    input: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: int | None = None
) -> Tensor:
    """Return a contiguous copy in which `as_strided` of the other arguments gives ``src``."""
    check_arguments("as_strided_scatter", input=input, src=src)
    # Of a gradient too, which may lie in another way.
    part = lambda x: as_strided(contiguous(x), size, stride, storage_offset)  # noqa: E731
    return _replaced("AsStridedScatterBackward0", input, src, part)


METHODS = {**in_place_methods(index_reduce, put, scatter_reduce)}
