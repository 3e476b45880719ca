"""Reductions: sum, mean, prod, norm, logsumexp, any, all, nansum, and cumulative sums.

``dim`` is an axis, several, or None for all of them; negative ones count from the back.  The axes
are left out of the result, or kept with size 1 if ``keepdim`` is true.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from convcore._errors import hinted, hints
from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, scalar_name, wrap
from convcore._tensor.dtypes import as_numpy, get_default_dtype
from convcore._tensor.dtypes import cast as cast_array
from convcore.autograd.grad_mode import mode
from convcore.autograd.node import describe, record
from convcore.engine.integers import as_dim
from convcore.functions._support.arguments import check_tensor, number
from convcore.functions._support.axes import (
    axes,
    expand_to,
    total_of,
    wide_total_of,
    with_numpy_names,
    wrap_dim,
)
from convcore.functions._support.errstate import ignore_errstate
from convcore.functions._support.in_place import in_place_methods
from convcore.functions.elementwise.arithmetic import conj, div, mul, sub
from convcore.functions.elementwise.elementwise import abs, exp, pow, sgn
from convcore.functions.elementwise.piecewise import kept, masked, where
from convcore.functions.shapes.broadcast import cast, fit, fitted
from convcore.functions.shapes.shape import reshape

__all__ = [
    "all",
    "any",
    "count_nonzero",
    "cumprod",
    "cumsum",
    "logsumexp",
    "mean",
    "nanmean",
    "nansum",
    "norm",
    "prod",
    "sum",
]


_FLOAT32 = np.dtype("float32")


def _as_summed(array: np.ndarray, dtype: Any) -> np.ndarray:
    """Return the array in the dtype in which it is summed: int64 for integers and bools."""
    if dtype is not None:
        return cast_array(array, as_numpy(dtype))
    return array.astype(np.int64) if array.dtype.kind in "biu" else array


@with_numpy_names
def sum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the sum of all elements, or over some axes.

    Parameters
    ----------
    input : Tensor
    dim : int, tuple of ints, or None for all axes
    keepdim : bool
    dtype : dtype or None
        The elements are converted to it first.  None: their own, int64 for integers and bools.

    Raises
    ------
    IndexError
        There is no axis ``dim``.

    Notes
    -----
    Long sums of float32 are exact to its last digits: they are added pairwise or in float64.

    Examples
    --------
    >>> import convcore
    >>> convcore.ones(2, 3).sum(0)
    tensor([2., 2., 2.])
    """
    check_tensor("sum", input)
    array = _as_summed(input._array, dtype)
    over = axes(dim, array.ndim)
    out = wrap(ignore_errstate(total_of, array, over, keepdim))
    if mode.enabled and input.requires_grad:
        name = "SumBackward0" if dim is None and not keepdim else "SumBackward1"
        record(name, (input,), out, _expand_backward(input, over))
    return out


def _expand_backward(input: Tensor, over: tuple[int, ...], by: float | None = None) -> Any:
    """Return the backward of a sum, or of a sum divided by ``by``."""
    shape, dtype = input._array.shape, input._array.dtype

    def backward(needs: tuple[bool, ...], grad: Tensor) -> Tensor:
        if grad._array.dtype != dtype:
            grad = cast(grad, dtype)
        whole = expand_to(grad, over, shape)
        return whole if by is None else div(whole, by)  # no view: hooks may change it in place

    return backward


@with_numpy_names
def mean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the mean of all elements, or over some axes; NaN where there are none.

    Parameters
    ----------
    input : Tensor of a floating-point or complex dtype
    dim : int, tuple of ints, or None for all axes
    keepdim : bool
    dtype : dtype or None
        The elements are converted to it first.

    Raises
    ------
    RuntimeError
        The elements are integers and no floating-point ``dtype`` is given.
    """
    check_tensor("mean", input)
    array = input._array if dtype is None else cast_array(input._array, as_numpy(dtype))
    if array.dtype.kind not in "fcV":
        which = "Input" if dtype is None else "Optional"
        raise hinted(
            RuntimeError(
                f"mean(): could not infer output dtype. {which} dtype must be either a "
                f"floating point or complex dtype. Got: {scalar_name(array.dtype)}"
            ),
            hints.FLOATS,
        )
    over = axes(dim, array.ndim)
    number = math.prod([array.shape[one] for one in over])
    total = ignore_errstate(wide_total_of, array, over, keepdim)
    out = wrap(np.asarray(ignore_errstate(np.true_divide, total, number), array.dtype))
    if mode.enabled and input.requires_grad:
        name = "MeanBackward0" if dim is None and not keepdim else "MeanBackward1"
        record(name, (input,), out, _expand_backward(input, over, max(number, 1)))
        describe(out, dim=over, keepdim=keepdim)
    return out


# Products


@with_numpy_names
def prod(
    input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """Return the product of all elements, or over one axis; of integers and bools as int64."""
    check_tensor("prod", input)
    array = _as_summed(input._array, dtype)
    over = axes(None if dim is None else as_dim(dim), array.ndim)
    narrow = array.dtype.char in "eE"  # multiplied in float32, and rounded once
    factors = array.astype(np.float32) if narrow else array
    options = {"dtype": factors.dtype, "keepdims": keepdim}  # NumPy would widen small integers
    value = ignore_errstate(np.multiply.reduce, factors, axis=over, **options)
    out = wrap(ignore_errstate(np.asarray, value, array.dtype))
    if mode.enabled:
        name = "ProdBackward0" if dim is None else "ProdBackward1"
        record(name, (input,), out, _prod_backward(input, over), (input, out))
    return out


def _widened(grad: Tensor, x: Tensor, y: Tensor, product: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Return all three in float32, ``y`` as ``product(x)``, where ``x`` is of 16 bits.

    The gradient of a product divides it by each factor, and that gradient's by its square: products
    rounded to 16 bits would give numbers without one right digit, where factors are near zero.
    """
    if x._array.dtype.char not in "eE":
        return grad, x, y
    x = cast(x, _FLOAT32)
    return cast(grad, _FLOAT32), x, product(x)


def _prod_backward(input: Tensor, over: tuple[int, ...]) -> Any:
    shape, dtype = input._array.shape, input._array.dtype
    dim = over[0] if len(over) == 1 else None

    def backward(needs: tuple[bool, ...], grad: Tensor, x: Tensor, y: Tensor) -> Tensor:
        grad, x, y = _widened(grad, x, y, lambda x: prod(x, dim))
        grad = expand_to(fit(grad, (grad._array.shape, x._array.dtype)), over, shape)
        if np.all(x._array):
            others = div(expand_to(fit(y, (y._array.shape, x._array.dtype)), over, shape), x)
        elif len(over) == 1:
            others = _others(x, over[0])
        else:
            others = reshape(_others(reshape(x, (-1,)), 0), shape)
        return fit(mul(grad, conj(others)), (shape, dtype))

    return backward


def _others(x: Tensor, along: int) -> Tensor:
    """Return for each element the product of the others on its axis, without a division."""
    array = np.moveaxis(x._array, along, 0)
    products = np.ones_like(array)
    products[1:] = ignore_errstate(np.cumprod, array[:-1], axis=0)
    after = ignore_errstate(np.cumprod, array[:0:-1], axis=0)[::-1]
    ignore_errstate(np.multiply, products[:-1], after, out=products[:-1])
    out = wrap(np.moveaxis(products, 0, along))

    def backward(needs: tuple[bool, ...], grad: Tensor, x: Tensor) -> Tensor:
        # d others_i / d x_k is the product of all but those two, and 0 for i = k.
        alone = _without_each(x, along)
        pairs, diagonal = _others(alone, along + 1), _diagonal(alone, along)
        weighted = mul(expand_to(grad, (along + 1,), alone._array.shape), conj(pairs))
        return sum(masked(weighted, ~diagonal), along)

    record("OthersBackward", (x,), out, backward, (x,))
    return out


def _without_each(x: Tensor, along: int) -> Tensor:
    """Return X[.., i, j, ..] = x[.., j, ..], and 1 for i = j."""
    shape = x._array.shape
    n = shape[along]
    repeated = expand_to(x, (along,), (*shape[:along], n, *shape[along:]))
    return where(wrap(_diagonal(repeated, along)), 1, repeated)


def _diagonal(x: Tensor, along: int) -> np.ndarray:
    n = x._array.shape[along]
    return np.eye(n, dtype=bool).reshape(n, n, *(1,) * (x._array.ndim - along - 2))


@with_numpy_names
def cumprod(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Return cumulative products along an axis."""
    check_tensor("cumprod", input)
    array = _as_summed(input._array, dtype)
    along = wrap_dim(dim, array.ndim)
    single = array.ndim == 0 or array.shape[along] == 1
    out = wrap(array.copy() if single else ignore_errstate(_running_product, array, along))
    if single:
        backward = fitted(lambda needs, grad: (grad,), input)
        record("CumprodBackward0", (input,), out, backward)
    elif mode.enabled:
        backward = fitted(_cumprod_backward(along), input)
        record("CumprodBackward0", (input,), out, backward, (input, out))
    return out


def _running_product(array: np.ndarray, along: int) -> np.ndarray:
    wide = np.float32 if array.dtype.char in "eE" else array.dtype
    return np.multiply.accumulate(array, along, wide).astype(array.dtype, copy=False)


def _cumprod_backward(along: int) -> Any:
    def backward(needs: tuple[bool, ...], grad: Tensor, x: Tensor, y: Tensor) -> tuple:
        grad, x, y = _widened(grad, x, y, lambda x: cumprod(x, along))
        if np.all(x._array):
            return (div(_cumsum_from_end(mul(grad, conj(y)), along), conj(x)),)
        alone = _without_each(x, along)
        n = x._array.shape[along]
        later = np.triu(np.ones((n, n), bool)).reshape(n, n, *(1,) * (x._array.ndim - along - 1))
        parts = masked(cumprod(alone, along + 1), later)
        repeated = expand_to(grad, (along,), alone._array.shape)
        return (sum(mul(repeated, conj(parts)), along + 1),)

    return backward


@with_numpy_names
def cumsum(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Return cumulative sums along an axis; of integers as int64."""
    check_tensor("cumsum", input)
    array = _as_summed(input._array, dtype)
    along = wrap_dim(dim, array.ndim)
    out = wrap(_running_sum(array, along))
    if mode.enabled:
        backward = fitted(lambda needs, grad: (_cumsum_from_end(grad, along),), input)
        record("CumsumBackward0", (input,), out, backward)
    return out


def _running_sum(array: np.ndarray, along: int) -> np.ndarray:
    if array.ndim == 0:
        return array.copy()
    wide = {"e": "d", "E": "d", "f": "d", "F": "D"}.get(array.dtype.char, array.dtype.char)
    return ignore_errstate(np.add.accumulate, array, along, wide).astype(array.dtype, copy=False)


def _cumsum_from_end(x: Tensor, along: int) -> Tensor:
    """Return the sums of the elements from each one on: the adjoint of cumsum."""
    array = x._array
    if array.ndim:
        array = np.flip(_running_sum(np.flip(array, along), along), along)
    out = wrap(array.copy())
    record("CumsumBackward0", (x,), out, lambda needs, grad: cumsum(grad, along))
    return out


# Norms


@with_numpy_names
def norm(
    input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    """Return the norm (sum of |x|^p)^(1/p) of all elements, or over some axes.

    Parameters
    ----------
    input : Tensor of a floating-point or complex dtype
    p : number, inf, -inf, or 'fro'
        'fro' is 2; inf is the largest absolute value, -inf the smallest, 0 counts what is not 0.
    dim : int, tuple of ints, or None for all axes
    keepdim : bool
    dtype : dtype or None
        The elements are converted to it first.
    """
    check_tensor("norm", input)
    p = 2.0 if p is None or p == "fro" else p
    if isinstance(p, str):
        raise RuntimeError(f"norm(): only p='fro' and numbers are supported, but got p='{p}'")
    p = float(number("norm", "p", p))
    if dtype is not None:
        input = cast(input, as_numpy(dtype))
    array = input._array
    if array.dtype.kind not in "fcV":
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
            f"{scalar_name(array.dtype)}"
        )
    over = axes(dim, array.ndim)
    value = ignore_errstate(_norm, array, p, over, keepdim)
    out = wrap(np.asarray(value, input.dtype.to_real().numpy))
    if mode.enabled:
        backward = _norm_backward(p, over, array.shape)
        record("LinalgVectorNormBackward0", (input,), out, backward, (input, out))
    return out


def _norm(array: np.ndarray, p: float, over: tuple[int, ...], keepdims: bool) -> np.ndarray:
    size = np.absolute(array)
    if size.dtype.char in "eE":
        size = size.astype(np.float32)
    if math.isinf(p):
        reduce: Any = np.maximum.reduce if p > 0 else np.minimum.reduce
        return reduce(size, axis=over, keepdims=keepdims, **({"initial": 0} if p > 0 else {}))
    if p == 0:
        return np.count_nonzero(size, axis=over, keepdims=keepdims)
    one_each = math.prod([size.shape[axis] for axis in over]) == 1
    if p == 1 or one_each:  # of one element alone, no power overflows
        return wide_total_of(np.asarray(size), over, keepdims)
    if p == 2:
        return np.sqrt(wide_total_of(np.asarray(np.square(size)), over, keepdims))
    return np.power(wide_total_of(np.asarray(np.power(size, p)), over, keepdims), 1 / p)


def _norm_backward(p: float, over: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    def backward(needs: tuple[bool, ...], grad: Tensor, x: Tensor, y: Tensor) -> Tensor:
        grad, y = expand_to(grad, over, shape), expand_to(y, over, shape)
        if p == 0:
            return wrap(np.zeros_like(x._array))
        if p == 1:
            return mul(sgn(x), grad)
        if math.isinf(p):
            largest = np.absolute(x._array) == y._array
            number = np.count_nonzero(largest, axis=over, keepdims=True).astype(y._array.dtype)
            return mul(masked(mul(sgn(x), grad), largest), wrap(np.asarray(1 / number)))
        if p < 0:  # one zero makes the norm zero, whatever the others are
            grad = masked(grad, y._array != 0)
        y = where(wrap(y._array != 0), y, 1.0)  # a vector of zeros has a gradient of zeros
        if p == 2:
            return mul(div(x, y), grad)
        size = abs(where(wrap(x._array != 0), x, 1.0))
        direction = mul(sgn(x), pow(size, p - 1)) if p < 2 else mul(x, pow(size, p - 2))
        return mul(direction, div(grad, pow(y, p - 1)))

    return backward


@with_numpy_names
def logsumexp(input: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """Return the logarithm of the sum of exponentials over some axes, without overflow."""
    check_tensor("logsumexp", input)
    if dim is None:
        raise TypeError("logsumexp(): argument 'dim' must be int or tuple of ints, not NoneType")
    array = input._array
    if array.dtype.kind not in "fcV":
        array = array.astype(get_default_dtype().numpy)
    over = axes(dim, array.ndim)
    out = wrap(np.asarray(ignore_errstate(_logsumexp, array, over, keepdim)))
    if mode.enabled:
        shape = array.shape

        def backward(needs: tuple[bool, ...], grad: Tensor, x: Tensor, y: Tensor) -> Tensor:
            share = exp(sub(x, expand_to(y, over, shape)))
            return mul(expand_to(grad, over, shape), conj(share))

        record("LogsumexpBackward0", (input,), out, backward, (input, out))
    return out


def _logsumexp(array: np.ndarray, over: tuple[int, ...], keepdims: bool) -> np.ndarray:
    if array.size == 0:
        return np.log(total_of(np.exp(array), over, keepdims))
    top = np.maximum.reduce(array.real, axis=over, keepdims=True)
    top = np.where(np.isfinite(top), top, 0).astype(array.real.dtype)
    total = np.log(total_of(np.asarray(np.exp(array - top)), over, True)) + top
    return total if keepdims else total.reshape(np.delete(total.shape, over).astype(int))


# Counts and logic


@names_arguments
@with_numpy_names
def any(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Return whether any element, of all or over some axes, is not zero."""
    check_tensor("any", input)
    return _logical(np.logical_or, input, dim, keepdim)


@names_arguments
@with_numpy_names
def all(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Return whether every element, of all or over some axes, is not zero."""
    check_tensor("all", input)
    return _logical(np.logical_and, input, dim, keepdim)


def _logical(ufunc: np.ufunc, x: Tensor, dim: Any, keepdim: bool) -> Tensor:
    array = x._array
    # No axes at all are none here, and not all of them as for sums.
    over = () if isinstance(dim, tuple | list) and not dim else axes(dim, array.ndim)
    value = np.asarray(ufunc.reduce(array, axis=over, keepdims=keepdim))
    # PyTorch keeps bytes, which were its bools once.
    return wrap(value.astype(np.uint8 if array.dtype == np.uint8 else bool, copy=False))


@with_numpy_names
def count_nonzero(input: Tensor, dim: Any = None) -> Tensor:
    """Return the number of elements, of all or over some axes, that are not zero."""
    check_tensor("count_nonzero", input)
    over = axes(dim, input._array.ndim)
    return wrap(np.asarray(np.count_nonzero(input._array, axis=over), np.int64))


# Sums and means without NaNs


@with_numpy_names
def nansum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the sum of all elements, or over some axes, without NaNs.

    The arguments are those of `sum`.

    Raises
    ------
    RuntimeError
        The elements are complex.
    """
    check_tensor("nansum", input)
    if input._array.dtype.kind == "c":
        raise RuntimeError("nansum on CPU does not support complex inputs")
    known = ~np.isnan(input._array)
    total = sum(wrap(kept(input._array, known)), dim, keepdim, dtype=dtype)
    shape, over = known.shape, axes(dim, known.ndim)

    def backward(needs: tuple[bool, ...], grad: Tensor) -> Tensor:
        return fit(masked(expand_to(grad, over, shape), known), (shape, input._array.dtype))

    record("NansumBackward0", (input,), total, backward)
    return total


@with_numpy_names
def nanmean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the mean of all elements, or over some axes, without NaNs.

    The arguments are those of `mean`.

    Raises
    ------
    RuntimeError
        The elements are integers or complex.
    """
    check_tensor("nanmean", input)
    if input._array.dtype.kind not in "fcV":
        raise RuntimeError(
            "nanmean(): expected input to have floating point or complex dtype but got "
            f"{scalar_name(input._array.dtype)}"
        )
    known = wrap(~np.isnan(input._array))
    return div(nansum(input, dim, keepdim, dtype=dtype), sum(known, dim, keepdim))


METHODS = {**in_place_methods(cumprod, cumsum)}
