"""Linear algebra under the names that it has beside `matmul`: det, inverse, svd, cholesky ...

Decompositions are those of convcore.linalg, which is loaded when one of them is called: here are
their older names, arguments and results.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, wrap
from convcore.functions._support.arguments import check_arguments, check_tensor
from convcore.functions.order import _return_type
from convcore.functions.shape import adjoint, transpose

__all__ = [
    "chain_matmul",
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "det",
    "inverse",
    "logdet",
    "lu",
    "lu_solve",
    "lu_unpack",
    "matrix_exp",
    "matrix_power",
    "pinverse",
    "qr",
    "slogdet",
    "svd",
    "triangular_solve",
]

_QR = _return_type("qr", "Q", "R")
_SLOGDET = _return_type("slogdet", "sign", "logabsdet")
_SVD = _return_type("svd", "U", "S", "V")
_TRIANGULAR_SOLVE = _return_type("triangular_solve", "solution", "cloned_coefficient")


def _linalg() -> Any:
    from convcore.functions import linalg

    return linalg


def chain_matmul(*matrices: Tensor) -> Tensor:
    """Return the product of matrices, multiplied in the cheapest order; see `multi_dot`."""
    if len(matrices) == 1:
        check_tensor("chain_matmul", matrices[0])
        return matrices[0]
    return _linalg().multi_dot(matrices)


# Inverses and determinants


def inverse(input: Tensor) -> Tensor:
    """Return the inverse of each matrix, (..., n, n); see convcore.linalg.inv."""
    return _linalg().inv(input)


@names_arguments
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """Return the pseudo-inverse of each matrix, (..., m, n); see convcore.linalg.pinv."""
    return _linalg().pinv(input, rtol=rcond)


def det(input: Tensor) -> Tensor:
    """Return the determinant of each matrix, (..., n, n); see convcore.linalg.det."""
    return _linalg().det(input)


def logdet(input: Tensor) -> Tensor:
    """Return the logarithm of each determinant: -inf where it is 0, NaN where it is negative."""
    return _linalg().logdet(input)


def slogdet(input: Tensor) -> Any:
    """Return (sign, logabsdet) of each matrix, (..., n, n); see convcore.linalg.slogdet."""
    return _SLOGDET(*_linalg().slogdet(input))


def matrix_exp(input: Tensor) -> Tensor:
    """Return the matrix exponential of each matrix, (..., n, n); see convcore.linalg.matrix_exp."""
    return _linalg().matrix_exp(input)


@names_arguments
def matrix_power(input: Tensor, n: int) -> Tensor:
    """Return each square matrix to an integer power, of its inverse if ``n`` is negative."""
    return _linalg().matrix_power(input, n)


# Decompositions


def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> Any:
    """Return (U, S, V) with U diag(S) V^H = input; convcore.linalg.svd returns V^H.

    Parameters
    ----------
    input : (..., m, n)
    some : bool
        U and V have min(m, n) columns; else they are square.
    compute_uv : bool
        Else both are zeros, (..., m, m) and (..., n, n).
    """
    if compute_uv:
        u, s, vh = _linalg().svd(input, full_matrices=not some)
        return _SVD(u, s, adjoint(vh))
    s = _linalg().svdvals(input)
    *lead, m, n = input._array.shape
    u, v = (wrap(np.zeros((*lead, k, k), input._array.dtype)) for k in (m, n))
    return _SVD(u, s, v)


def qr(input: Tensor, some: bool = True) -> Any:
    """Return (Q, R) of each matrix; if not ``some``, Q is square.  See convcore.linalg.qr."""
    return _QR(*_linalg().qr(input, "reduced" if some else "complete"))


def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """Return the Cholesky factor of each matrix; see convcore.linalg.cholesky."""
    return _linalg().triangular.checked_cholesky(input, upper, "cholesky")


def cholesky_solve(input: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """Return X with A X = input, where L L^H = A, or L^H L = A if ``upper``."""
    return _linalg().cholesky_solve(input, L, upper)


def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """Return the inverse of A, where L L^H = A, or L^H L = A if ``upper``."""
    return _linalg().cholesky_inverse(L, upper)


def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """Return X with A X = b, given what convcore.linalg.lu_factor returned for A."""
    return _linalg().lu_solve(LU_data, LU_pivots, b)


@names_arguments
def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> Any:
    """Return (P, L, U) of what convcore.linalg.lu_factor returned; empty what is not asked for."""
    return _linalg().lu_unpack(LU_data, LU_pivots, unpack_data, unpack_pivots)


@names_arguments
def triangular_solve(
    b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    """Return (X, A) with A X = b, or A^T X = b if ``transpose``, for triangular A."""
    check_arguments("triangular_solve", b=b, A=A)
    matrix, is_upper = (_transpose(A, -2, -1), not upper) if transpose else (A, upper)
    solution = _linalg().solve_triangular(matrix, b, upper=is_upper, unitriangular=unitriangular)
    return _TRIANGULAR_SOLVE(solution, A.clone())


_transpose = transpose


def lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
    """Return (LU, pivots), and info too if asked for; see convcore.linalg.lu_factor_ex."""
    found = tuple(_linalg().lu_factor_ex(A, pivot=pivot))
    return found if get_infos else found[:2]


FUNCTIONS_ONLY = {"chain_matmul", "lu_unpack"}
