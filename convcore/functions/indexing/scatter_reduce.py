"""Reductions of what several indices name: scatter_reduce."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, contiguous_format, wrap
from convcore._tensor.dtypes import INEXACT
from convcore.autograd.grad_mode import mode
from convcore.autograd.node import record
from convcore.functions._support.arguments import check_arguments
from convcore.functions._support.errstate import ignore_errstate
from convcore.functions._support.in_place import in_place_methods
from convcore.functions.elementwise.arithmetic import div, mul
from convcore.functions.elementwise.piecewise import masked, where
from convcore.functions.indexing.masked import masked_fill
from convcore.functions.indexing.scatter import (
    _checked_scatter,
    _grid_key,
    _scatter_add,
    corner,
    gather,
    scatter,
    scatter_add,
)
from convcore.functions.shapes.convert import copied
from convcore.functions.shapes.slicing import slice_of

__all__ = ["scatter_reduce"]

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


# A part of a copy replaced


METHODS = {**in_place_methods(scatter_reduce)}
