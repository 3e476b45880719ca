"""Cholesky factors and triangular systems.

References
----------
M. B. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
differentiation", 2008; I. Murray, "Differentiation of the Cholesky decomposition",
arXiv:1602.07527, 2016: the gradients.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, wrap
from convcore.autograd.node import record
from convcore.functions._support.arguments import check_arguments
from convcore.functions._support.errstate import ignore_errstate
from convcore.functions._support.matrix_checks import (
    check_equation,
    check_matrix,
    check_same_dtype,
    check_square,
    each,
    raise_first,
)
from convcore.functions.elementwise.arithmetic import add, mul, neg
from convcore.functions.indexing.order import _return_type
from convcore.functions.products.matmul import matmul
from convcore.functions.shapes.broadcast import broadcast_shape, sum_to
from convcore.functions.shapes.shape import adjoint, transpose
from convcore.functions.shapes.slicing import tril, triu

__all__ = ["cholesky", "cholesky_ex", "cholesky_solve", "solve_triangular"]

_CHOLESKY_EX = _return_type("linalg_cholesky_ex", "L", "info")

Needs = tuple[bool, ...]


def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """Return the triangular L with L L^H = A, of each matrix; if ``upper``, L^H.

    Parameters
    ----------
    A : (..., n, n)
        Hermitian and positive-definite; only the triangle that is asked for is read.
    upper : bool

    Raises
    ------
    LinAlgError
        A matrix is not positive-definite.

    Notes
    -----
    With S, the lower triangle of L^H grad with its diagonal halved, the gradient is the hermitian
    part of L^-H S L^-1 (Murray 2016, equation 10).
    """
    return checked_cholesky(A, upper, "linalg.cholesky")


def checked_cholesky(A: Tensor, upper: bool, function: str) -> Tensor:
    """Return Cholesky factors; errors name ``function``."""
    factor, info = _cholesky(A, upper, function)
    raise_first(function, info._array, _not_positive)
    return factor


def _not_positive(order: int) -> str:
    return (
        "The factorization could not be completed because the input is not positive-definite (the "
        f"leading minor of order {order} is not positive-definite)."
    )


def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    """Return (L, info) of `cholesky`; info is 0, or the order of the minor that is not positive.

    The factor of a matrix that is not positive-definite is NaN; with ``check_errors`` an error.
    """
    factor, info = _cholesky(A, upper, "linalg.cholesky")
    if check_errors:
        raise_first("linalg.cholesky_ex", info._array, _not_positive)
    return _CHOLESKY_EX(factor, info)


def _cholesky(A: Tensor, upper: bool, function: str) -> tuple[Tensor, Tensor]:
    check_square(function, A, kernel="cholesky_cpu")
    if upper:
        factor, info = _cholesky(adjoint(A), False, function)
        return adjoint(factor), info
    array = A._array
    try:
        lower = ignore_errstate(np.linalg.cholesky, array)
        info = np.zeros(array.shape[:-2], np.int32)
    except np.linalg.LinAlgError:
        info = each(_bad_minor, array)
        unit = np.eye(array.shape[-1], dtype=array.dtype)
        regular = np.where((info != 0)[..., None, None], unit, array)
        lower = ignore_errstate(np.linalg.cholesky, regular)
    info = np.where(info, info, _unknown_minor(lower))
    if info.any():
        lower = np.where((info != 0)[..., None, None], lower.dtype.type(np.nan), lower)
    out = wrap(lower)
    record("LinalgCholeskyExBackward0", (A,), out, _cholesky_backward, (out,))
    return out, wrap(info)


def _bad_minor(matrix: np.ndarray) -> int:
    """Return the order of the first leading minor that is not positive, or 0."""
    from scipy.linalg import get_lapack_funcs

    (potrf,) = get_lapack_funcs(("potrf",), (matrix,))
    return int(potrf(matrix, lower=True)[1])


def _unknown_minor(lower: np.ndarray) -> np.ndarray:
    """Return the order of the first leading minor that made NaN, which NumPy lets pass, or 0."""
    known = ~np.isnan(lower).any(-1)
    order = np.cumprod(known, -1).sum(-1)
    return np.asarray(np.where(order < known.shape[-1], order + 1, 0), np.int32)


def _cholesky_backward(needs: Needs, grad: Tensor, L: Tensor) -> Tensor:
    back = adjoint(L)
    inner = half_lower(matmul(back, grad))
    left = solve_triangular(back, inner, upper=True)
    both = solve_triangular(L, left, upper=False, left=False)
    return mul(add(both, adjoint(both)), 0.5)


def half_lower(x: Tensor) -> Tensor:
    """Return the lower triangle, with half of the diagonal."""
    halved = 1 - np.eye(x._array.shape[-1], dtype=x._array.real.dtype) / 2
    return mul(tril(x), wrap(halved))


@names_arguments
def solve_triangular(
    A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """Return X with A X = B, or X A = B if not ``left``, for triangular A.

    Parameters
    ----------
    A : (..., n, n)
        The other triangle is not read, nor the diagonal if ``unitriangular``: it is taken as ones.
    B : (..., n, k); if not ``left`` (..., k, n)
        Leading axes broadcast.
    upper : bool

    Raises
    ------
    RuntimeError
        Sizes or dtypes that do not go together.

    Notes
    -----
    The gradients are G = A^-H grad for B, and the triangle of -G X^H for A (Giles 2008, 2.3.1).
    """
    check_arguments("linalg_solve_triangular", A=A, B=B)
    check_same_dtype("linalg.solve_triangular", A, B)
    check_square("linalg.solve_triangular", A)
    check_matrix("linalg.solve_triangular", B, "B")
    check_equation("linalg.solve_triangular", A, B, left)
    if not left:
        flipped = transpose(A, -2, -1), transpose(B, -2, -1)
        return transpose(_solved(*flipped, not upper, unitriangular), -2, -1)
    return _solved(A, B, upper, unitriangular)


def _solved(A: Tensor, B: Tensor, upper: bool, unit: bool) -> Tensor:
    out = wrap(_triangular(A._array, B._array, upper, unit))

    def backward(needs: Needs, grad: Tensor, A: Tensor, X: Tensor) -> tuple:
        back = _solved(adjoint(A), grad, not upper, unit)
        grad_a = None
        if needs[0]:
            whole = sum_to(neg(matmul(back, adjoint(X))), A._array.shape)
            grad_a = triu(whole, int(unit)) if upper else tril(whole, -int(unit))
        return grad_a, sum_to(back, shape) if needs[1] else None

    shape = B._array.shape
    record("LinalgSolveTriangularBackward0", (A, B), out, backward, (A, out))
    return out


def _triangular(a: np.ndarray, b: np.ndarray, upper: bool, unit: bool) -> np.ndarray:
    """Return the solutions of a batch by LAPACK's trtrs; a zero on the diagonal divides."""
    n, k = b.shape[-2:]
    lead = broadcast_shape(a.shape[:-2], b.shape[:-2])
    x = np.empty((*lead, n, k), b.dtype)
    if x.size == 0:
        return x
    from scipy.linalg import get_blas_funcs

    (trsm,) = get_blas_funcs(("trsm",), (a, b))
    left, right = np.broadcast_to(a, (*lead, n, n)), np.broadcast_to(b, (*lead, n, k))
    for at in np.ndindex(lead):
        x[at] = trsm(1.0, left[at], right[at], lower=not upper, diag=bool(unit))
    return x


def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """Return X with A X = B, given the Cholesky factor of A.

    Parameters
    ----------
    B : (..., n, k)
    L : (..., n, n)
        With L L^H = A; if ``upper``, with L^H L = A.
    upper : bool
    """
    check_arguments("cholesky_solve", B=B, L=L)
    for name, one in (("b", B), ("u", L)):
        if one._array.ndim < 2:
            raise RuntimeError(
                f"{name} should have at least 2 dimensions, but has {one._array.ndim} dimensions "
                "instead"
            )
    first, second = (adjoint(L), L) if upper else (L, adjoint(L))
    return solve_triangular(second, solve_triangular(first, B, upper=False), upper=True)
