"""Matrix products: mm, bmm, matmul, mv, dot, outer, linear, addmm, baddbmm.

Every product of floating-point numbers is the engine's, whose bits do not depend on the number of
threads.  In the formulas X^H is X transposed and, if complex, conjugated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from convcore._errors import hinted, hints
from convcore._errors.calls import names_arguments, typename
from convcore._tensor import Tensor, wrap
from convcore._tensor.creation.arguments import factor
from convcore._tensor.dtype_names import C_NAMES
from convcore.autograd.casting import here
from convcore.autograd.grad_mode import mode
from convcore.autograd.node import describe, record
from convcore.engine.conv.selection import selected
from convcore.engine.layers.elementwise.elementwise import is_half
from convcore.engine.runtime.casts import astype
from convcore.functions._support.arguments import check_arguments
from convcore.functions._support.array_product import product
from convcore.functions._support.errstate import ignore_errstate
from convcore.functions._support.in_place import in_place_methods
from convcore.functions._support.matmul_checks import (
    batch2_text,
    check_batches,
    check_factors,
    check_scalar_types,
    check_sum_dtypes,
    check_vector,
    elements_name,
)
from convcore.functions.elementwise import casts
from convcore.functions.elementwise.arithmetic import add, conj, mul
from convcore.functions.shapes.broadcast import broadcast_shape, broadcast_to, cast, sum_to
from convcore.functions.shapes.shape import adjoint, reshape, t, unsafe_reshape, unsqueeze

__all__ = ["addmm", "baddbmm", "bmm", "dot", "ger", "linear", "matmul", "mm", "mv", "outer"]

Needs = tuple[bool, ...]


_SINGLE = np.dtype(np.float32)

# Products of two matrices


def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """Return the product of two matrices.

    Parameters
    ----------
    input : (m, k)
    mat2 : (k, n), the same dtype

    Raises
    ------
    RuntimeError
        An argument is no matrix, or sizes or dtypes that do not go together.

    Examples
    --------
    >>> import convcore
    >>> mm(convcore.tensor([[1, 2]]), convcore.tensor([[3], [4]]))
    tensor([[11]])
    """
    check_arguments("mm", input=input, mat2=mat2)
    a, b = input._array, mat2._array
    for name, array in (("self", a), ("mat2", b)):
        if array.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix")
    check_factors(a, b)
    if a.dtype != b.dtype:
        raise RuntimeError(
            "expected m1 and m2 to have the same dtype, but got: "
            f"{C_NAMES[a.dtype.name]} != {C_NAMES[b.dtype.name]}"
        )
    return _product(input, mat2)


def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """Return the product of each of N pairs of matrices.

    Parameters
    ----------
    input : (N, m, k)
    mat2 : (N, k, n), the same dtype

    Raises
    ------
    RuntimeError
        As `mm`.
    """
    check_arguments("bmm", input=input, mat2=mat2)
    check_batches(input._array, mat2._array)
    return _product(input, mat2)


def _product(x: Tensor, y: Tensor) -> Tensor:
    """Return (..., m, k) @ (..., k, n); the leading axes broadcast."""
    a, b = x._array, y._array
    batched = a.ndim > 2 or b.ndim > 2
    out = wrap(product(a, b, "bmm" if batched else "addmm_impl_cpu_"))
    if mode.enabled:
        name = "BmmBackward0" if batched else "MmBackward0"
        backward = partial(_product_backward, a.shape, b.shape, _is_transposed(b))
        record(name, (x, y), out, backward, _needed(x, y))
    return out


def _product_backward(
    x_shape: tuple[int, ...],
    y_shape: tuple[int, ...],
    y_transposed: bool,
    needs: Needs,
    grad: Tensor,
    x: Tensor,
    y: Tensor,
) -> tuple:
    """Return grad @ y^H and x^H @ grad."""
    return (
        sum_to(_product(grad, adjoint(y)), x_shape) if needs[0] else None,
        sum_to(_second_grad(x, grad, y_transposed), y_shape) if needs[1] else None,
    )


def _is_transposed(array: np.ndarray) -> bool:
    """Return whether a matrix is stored column by column, as a layer's weight is multiplied."""
    flags = array.flags
    return array.ndim == 2 and flags.f_contiguous and not flags.c_contiguous


def _second_grad(x: Tensor, grad: Tensor, transposed: bool) -> Tensor:
    """Return x^H @ grad, stored as the second factor is.

    A weight's gradient is as large as the weight: made in another order, it would be copied.
    """
    if not transposed:
        return _product(adjoint(x), grad)
    rows = t(_product(t(grad), conj(x)))
    # Without a graph nobody needs to know that it is a view, and it can become the weight's own.
    return rows if mode.enabled else wrap(rows._array)


def _needed(x: Tensor, y: Tensor) -> tuple:
    """Return what the gradients of a product need: of each factor's, the other factor."""
    return x if y.requires_grad else None, y if x.requires_grad else None


# Products with vectors


def mv(input: Tensor, vec: Tensor) -> Tensor:
    """Return the product of a matrix and a vector.

    Parameters
    ----------
    input : (m, k)
    vec : (k,), the same dtype

    Raises
    ------
    RuntimeError
        Other numbers of axes, or sizes or dtypes that do not go together.
    """
    check_arguments("mv", input=input, vec=vec)
    a, v = input._array, vec._array
    if a.ndim != 2 or v.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {a.ndim}, {v.ndim}")
    check_vector(a.shape[0], a, v)
    out = wrap(product(a, v, "addmv_impl_cpu"))
    if mode.enabled:
        record("MvBackward0", (input, vec), out, _mv_backward, _needed(input, vec))
    return out


def _mv_backward(needs: Needs, grad: Tensor, x: Tensor, v: Tensor) -> tuple:
    return (outer(grad, conj(v)) if needs[0] else None, mv(adjoint(x), grad) if needs[1] else None)


def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """Return the sum of the products of two vectors' elements; nothing is conjugated.

    Parameters
    ----------
    input, tensor : (k,), the same dtype

    Raises
    ------
    RuntimeError
        Other numbers of axes, or sizes or dtypes that do not go together.

    Examples
    --------
    >>> import convcore
    >>> dot(convcore.tensor([1.0, 2.0]), convcore.tensor([3.0, 4.0]))
    tensor(11.)
    """
    check_arguments("dot", input=input, tensor=tensor)
    a, b = input._array, tensor._array
    if a.ndim != 1 or b.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {a.ndim}D and {b.ndim}D tensors")
    if a.dtype != b.dtype:
        raise RuntimeError(
            "dot : expected both vectors to have same dtype, but found "
            f"{elements_name(a)} and {elements_name(b)}"
        )
    if a.size != b.size:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{a.size}] and src [{b.size}] to have the "
            f"same number of elements, but got {a.size} and {b.size} elements respectively"
        )
    out = wrap(product(a, b, "dot"))
    if mode.enabled:
        record("DotBackward0", (input, tensor), out, _dot_backward, _needed(input, tensor))
    return out


def _dot_backward(needs: Needs, grad: Tensor, x: Tensor, y: Tensor) -> tuple:
    return (mul(conj(y), grad) if needs[0] else None, mul(conj(x), grad) if needs[1] else None)


def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """Return the products of all pairs of elements of two vectors.

    Parameters
    ----------
    input : (m,)
    vec2 : (n,)

    Returns
    -------
    (m, n)

    Raises
    ------
    RuntimeError
        An argument is no vector.
    """
    check_arguments("outer", input=input, vec2=vec2)
    for name, tensor in (("self", input), ("vec2", vec2)):
        if tensor._array.ndim != 1:
            raise RuntimeError(
                f"outer: Expected 1-D argument {name}, but got {tensor._array.ndim}-D"
            )
    return mul(unsqueeze(input, 1), vec2)


ger = outer


# matmul and linear


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """Return the matrix product; the leading axes of two stacks of matrices broadcast.

    Parameters
    ----------
    input : (..., m, k) or (k,)
    other : (..., k, n) or (k,), the same dtype
        A vector is a matrix of one row (input) or one column (other), whose axis the result drops.

    Returns
    -------
    (..., m, n), without m or n where a factor is a vector

    Raises
    ------
    RuntimeError
        A factor without axes, or sizes or dtypes that do not go together.
    NotImplementedError
        bool tensors.

    Notes
    -----
    float16 is multiplied in float32 and rounded once; integers wrap around.

    Examples
    --------
    >>> import convcore
    >>> convcore.ones(5, 2, 3) @ convcore.ones(3)
    tensor([[3., 3.],
            [3., 3.],
            [3., 3.],
            [3., 3.],
            [3., 3.]])
    """
    check_arguments("matmul", input=input, other=other)
    return _matmul("matmul", input, other)


def _matmul(function: str, x: Tensor, y: Tensor) -> Tensor:
    ranks = x._array.ndim, y._array.ndim
    if ranks == (2, 2):
        return mm(x, y)
    if 0 in ranks:
        raise RuntimeError(
            f"both arguments to {function} need to be at least 1D, "
            f"but they are {ranks[0]}D and {ranks[1]}D"
        )
    if ranks == (1, 1):
        return dot(x, y)
    if ranks == (2, 1):
        return mv(x, y)
    if ranks[0] == 1:
        rows = _matmul(function, unsqueeze(x, 0), y)
        return unsafe_reshape(rows, (*rows._array.shape[:-2], y._array.shape[-1]))
    if ranks[1] <= 2:  # one product with all rows, instead of one for each matrix
        lead, rest = x._array.shape[:-1], y._array.shape[1:]
        return unsafe_reshape(_matmul(function, _rows(x), y), (*lead, *rest))
    return _stacks(x, y)


def _stacks(x: Tensor, y: Tensor) -> Tensor:
    """Return the products of matrices of which at least the second is a stack."""
    a, b = x._array, y._array
    lead = broadcast_shape(a.shape[:-2], b.shape[:-2])
    if a.shape[-1] != b.shape[-2]:
        n = math.prod(lead)
        raise RuntimeError(batch2_text([n, a.shape[-1]], [n, b.shape[-2]]))
    check_scalar_types(a, b)
    return _product(x, y)


def _rows(x: Tensor) -> Tensor:
    """Return the elements as a matrix of the last axis' rows."""
    shape = x._array.shape
    return reshape(x, (math.prod(shape[:-1]), shape[-1]))


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return input @ weight^T + bias.

    Parameters
    ----------
    input : (..., in_features)
    weight : (out_features, in_features), or (in_features,) for one feature without an axis
    bias : (out_features,), optional

    Returns
    -------
    (..., out_features)

    Raises
    ------
    TypeError
        An argument is no tensor.
    RuntimeError
        Sizes or dtypes that do not go together.

    Notes
    -----
    Of a matrix, or of rows that lie one after the other, with a bias it is one operation, whose
    gradients are those of the bias, the input and the transposed weight; of anything else a product
    and a sum.
    """
    if not (isinstance(input, Tensor) and isinstance(weight, Tensor)):
        check_arguments("linear", input=input, weight=weight)
    if here.inside and input._array.dtype.char == "E":
        lowered = _linear_of_float32(input, weight, bias)
        if lowered is not None:
            return lowered
        weight, bias = (one if one is None else casts.lowered(one) for one in (weight, bias))
    columns = t(weight)
    x, w = input._array, columns._array
    try:
        if bias is None:
            return _matmul("linear", input, columns)
        if not isinstance(bias, Tensor):
            raise TypeError(
                f"linear(): argument 'bias' (position 3) must be Tensor, not {typename(bias)}"
            )
        check_sum_dtypes(bias._array, x, w)
        if x.ndim == 2 and w.ndim == 2:
            check_factors(x, w)
            return _product_sum(bias, input, columns, 1, 1)
        # A vector's is a sum, as the founding programs' hooks have it, and PyTorch had it at 1.x.
        if x.ndim > 2 and w.ndim == 2 and bias._array.ndim == 1 and x.flags.c_contiguous:
            return reshape(addmm(bias, _rows(input), columns), (*x.shape[:-1], w.shape[1]))
        return add(_matmul("linear", input, columns), bias)
    except RuntimeError as error:
        _explain(error, x, w)
        raise


def _linear_of_float32(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor | None:
    """Return `linear` of bfloat16 and parameters that autocast has left in float32; None of others.

    The parameters are rounded where products are in bfloat16: a cast of a large weight would take
    as long as the product.
    """
    x, w = input._array, weight._array
    vectors = [] if bias is None else [bias._array]
    if {one.dtype.char for one in (w, *vectors)} != {"f"} or w.ndim != 2 or not x.ndim:
        return None
    if x.shape[-1] != w.shape[1] or any(one.shape != w.shape[:1] for one in vectors):
        return None
    rows = _lower_product(bias, input if x.ndim == 2 else _rows(input), t(weight))
    return rows if x.ndim == 2 else reshape(rows, (*x.shape[:-1], w.shape[0]))


def _lower_product(bias: Tensor | None, x: Tensor, y: Tensor) -> Tensor:
    """Return x @ y + bias, of bfloat16 (m, k), and float32 (k, n) and (n,), rounded once."""
    with selected(matmul="bf16"):
        wide = product(astype(x._array, _SINGLE), y._array, "addmm_impl_cpu_")
    if bias is not None:
        ignore_errstate(np.add, wide, bias._array, out=wide)
    out = wrap(ignore_errstate(astype, wide, x._array.dtype))
    if mode.enabled:
        factors = (x, y) if bias is None else (bias, x, y)
        name = "MmBackward0" if bias is None else "AddmmBackward0"
        record(name, factors, out, _lower_product_backward, _needed(x, y))
    return out


def _lower_product_backward(needs: Needs, grad: Tensor, x: Tensor, y: Tensor) -> tuple:
    *of_bias, of_x, of_y = needs
    with selected(matmul="bf16"):
        wide = cast(grad, _SINGLE)
        return (
            *(sum_to(wide, wide._array.shape[1:]) if need else None for need in of_bias),
            _lower_product(None, grad, t(y)) if of_x else None,
            _second_grad(cast(x, _SINGLE), wide, True) if of_y else None,
        )


def _explain(error: RuntimeError, x: np.ndarray, w: np.ndarray) -> None:
    """Add a hint to the error of a linear layer's input that does not fit."""
    if x.ndim and w.ndim == 2 and x.shape[-1] != len(w):
        hinted(error, hints.linear_input(x.shape, len(w)))
    elif x.dtype != w.dtype:
        hinted(error, hints.other_dtype(x.dtype.name, w.dtype.name))


# Product and sum: addmm and its relatives


@names_arguments
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return beta * input + alpha * (mat1 @ mat2).

    Parameters
    ----------
    input : broadcasts to (m, n); not looked at if beta is 0
    mat1 : (m, k)
    mat2 : (k, n)
    beta, alpha : numbers

    Raises
    ------
    RuntimeError
        Other numbers of axes, or sizes or dtypes that do not go together.
    """
    check_arguments("addmm", input=input, mat1=mat1, mat2=mat2)
    a, b = mat1._array, mat2._array
    for name, array in (("mat1", a), ("mat2", b)):
        if array.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix, got {array.ndim}-D tensor")
    check_factors(a, b)
    check_sum_dtypes(input._array, a, b)
    return _product_sum(input, mat1, mat2, beta, alpha)


@names_arguments
def baddbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1
) -> Tensor:
    """Return beta * input + alpha * bmm(batch1, batch2).

    Parameters
    ----------
    input : broadcasts to (N, m, n); not looked at if beta is 0
    batch1 : (N, m, k)
    batch2 : (N, k, n)
    beta, alpha : numbers

    Raises
    ------
    RuntimeError
        As `addmm`.
    """
    check_arguments("baddbmm", input=input, batch1=batch1, batch2=batch2)
    a, b = batch1._array, batch2._array
    check_batches(a, b)
    check_sum_dtypes(input._array, a, b)
    return _product_sum(input, batch1, batch2, beta, alpha)


def _product_sum(bias: Tensor, x: Tensor, y: Tensor, beta: Any, alpha: Any) -> Tensor:
    """Return beta * bias + alpha * (x @ y) of matrices, or of as many pairs of them."""
    a, b, c = x._array, y._array, bias._array
    batched = a.ndim > 2
    half = a.dtype if is_half(a.dtype) and (beta, alpha) != (1, 1) else None
    left, right = (a, b) if half is None else (a.astype(np.float32), b.astype(np.float32))
    out = product(left, right, "baddbmm" if batched else "addmm_impl_cpu_")
    if c.ndim > out.ndim or c.shape != out.shape[out.ndim - c.ndim :]:
        c = broadcast_to(bias, out.shape)._array  # an error if it does not go
    name = "baddbmm" if batched else "addmm"
    beta, alpha = factor(name, "beta", beta, out.dtype), factor(name, "alpha", alpha, out.dtype)
    ignore_errstate(_add_into, out, c, beta, alpha)
    result = wrap(ignore_errstate(out.astype, half) if half else out)
    if mode.enabled:
        record(
            "BaddbmmBackward0" if batched else "AddmmBackward0",
            (bias, x, y),
            result,
            partial(_product_sum_backward, bias._array.shape, beta, alpha, _is_transposed(b)),
            _needed(x, y),
        )
        describe(result, beta=beta, alpha=alpha)
    return result


def _add_into(out: np.ndarray, bias: np.ndarray, beta: Any, alpha: Any) -> None:
    """Make out, in place, beta * bias + alpha * out."""
    if alpha != 1:
        np.multiply(out, alpha, out=out)
    if beta == 1:
        np.add(out, bias, out=out)
    elif beta != 0:
        np.add(out, np.multiply(bias, beta, dtype=out.dtype), out=out)


def _product_sum_backward(
    bias_shape: tuple[int, ...],
    beta: Any,
    alpha: Any,
    y_transposed: bool,
    needs: Needs,
    grad: Tensor,
    x: Tensor,
    y: Tensor,
) -> tuple:
    scaled = grad if alpha == 1 else mul(grad, conj(alpha))
    return (
        sum_to(grad if beta == 1 else mul(grad, conj(beta)), bias_shape) if needs[0] else None,
        _product(scaled, adjoint(y)) if needs[1] else None,
        _second_grad(x, scaled, y_transposed) if needs[2] else None,
    )


def _operator(x: Tensor, y: Any) -> Any:
    if isinstance(y, np.ndarray):
        y = wrap(y)
    return matmul(x, y) if isinstance(y, Tensor) else NotImplemented


def _reflected_operator(x: Tensor, y: Any) -> Any:
    return matmul(wrap(y), x) if isinstance(y, np.ndarray) else NotImplemented


FUNCTIONS_ONLY = {"linear"}
METHODS: dict[str, Callable] = {
    **in_place_methods(addmm, baddbmm),
    "__matmul__": _operator,
    "__rmatmul__": _reflected_operator,
}
