"""LU factors.

References
----------
M. B. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
differentiation", 2008: the gradient is derived as there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, scalar_name, wrap
from convcore.autograd.node import record
from convcore.engine.runtime.checks import plain
from convcore.functions._support.arguments import check_arguments
from convcore.functions._support.matrix_checks import check_same_dtype, raise_first
from convcore.functions.arithmetic import add
from convcore.functions.linalg.triangular import solve_triangular
from convcore.functions.matmul import matmul
from convcore.functions.order import _return_type
from convcore.functions.shape import adjoint, transpose
from convcore.functions.slicing import narrow, tril, triu

__all__ = ["lu", "lu_factor", "lu_factor_ex", "lu_solve", "lu_unpack"]

_LU = _return_type("linalg_lu", "P", "L", "U")
_LU_FACTOR = _return_type("linalg_lu_factor", "LU", "pivots")
_LU_FACTOR_EX = _return_type("linalg_lu_factor_ex", "LU", "pivots", "info")
_LU_UNPACK = _return_type("lu_unpack", "P", "L", "U")

Needs = tuple[bool, ...]


def lu_factor(A: Tensor, *, pivot: bool = True) -> Any:
    """Return (LU, pivots): both factors in one matrix, L without its ones, and rows exchanged.

    Parameters
    ----------
    A : (..., m, n)
    pivot : True
        Without exchanges there is no factorization on a CPU.

    Returns
    -------
    (..., m, n), and (..., min(m, n)) of int32: row i was exchanged with row pivots[i], from 1

    Raises
    ------
    RuntimeError
        U has a zero on its diagonal.
    """
    factors, pivots, info = _factored(A, pivot, "torch.lu_factor")
    raise_first("torch.linalg.lu_factor", info, _zero_in_u, RuntimeError)
    return _LU_FACTOR(factors, pivots)


def _zero_in_u(order: int) -> str:
    return (
        f"U[{order},{order}] is zero and using it on lu_solve would result in a division by zero. "
        "If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or "
        "linalg.lu_factor_ex(A, pivot)"
    )


def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """Return (LU, pivots, info) of `lu_factor`; info is the number of the first zero, or 0."""
    if check_errors:
        lu_factor(A, pivot=pivot)
    factors, pivots, info = _factored(A, pivot, "torch.lu_factor")
    return _LU_FACTOR_EX(factors, pivots, wrap(info))


def lu(A: Tensor, *, pivot: bool = True) -> Any:
    """Return (P, L, U) with P L U = A, of each matrix; see `lu_factor`."""
    factors, pivots, _ = _factored(A, pivot, "linalg.lu")
    return _LU(*lu_unpack(factors, pivots))


def _check(A: Any, pivot: bool, function: str) -> None:
    check_arguments(function.split(".")[-1], A=A)
    dtype = A._array.dtype
    if dtype.char not in "fdFD":
        raise NotImplementedError(f"\"lu_cpu\" not implemented for '{scalar_name(dtype)}'")
    if A._array.ndim < 2:
        raise RuntimeError(
            f"{function}: Expected tensor with 2 or more dimensions. Got size: "
            f"{list(A._array.shape)} instead"
        )
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")


def _factored(A: Tensor, pivot: bool, function: str) -> tuple[Tensor, Tensor, np.ndarray]:
    from scipy.linalg import get_lapack_funcs

    _check(A, pivot, function)
    array = A._array
    lead, (m, n) = array.shape[:-2], array.shape[-2:]
    factors = np.empty_like(array, order="C")
    pivots = np.empty((*lead, min(m, n)), np.int32)
    info = np.zeros(lead, np.int32)
    (getrf,) = get_lapack_funcs(("getrf",), (array,))
    for at in np.ndindex(lead) if array.size else ():
        factors[at], exchanged, info[at] = getrf(array[at])
        pivots[at] = exchanged + 1
    out, rows = wrap(factors), wrap(pivots)
    record("LinalgLuFactorExBackward0", (A,), out, _lu_backward, (out, rows))
    return out, rows, info


def _lu_backward(needs: Needs, grad: Tensor, LU: Tensor, pivots: Tensor) -> Tensor:
    """Return P L^-H (tril(L^H gL, -1) + triu(gU U^H)) U^-H, of a square matrix."""
    m, n = LU._array.shape[-2:]
    if m != n:
        raise NotImplementedError(
            f"the gradient of LU factors is there for square matrices, but they are {m} by {n}"
        )
    lower, upper = _halves(LU)
    inner = add(
        tril(matmul(adjoint(lower), tril(grad, -1)), -1), triu(matmul(triu(grad), adjoint(upper)))
    )
    left = solve_triangular(adjoint(lower), inner, upper=True, unitriangular=True)
    both = solve_triangular(adjoint(upper), left, upper=False, left=False)
    return matmul(wrap(_permutation(pivots._array, n, LU._array.dtype)), both)


def _halves(LU: Tensor) -> tuple[Tensor, Tensor]:
    m, n = LU._array.shape[-2:]
    k = min(m, n)
    lower = tril(narrow(LU, -1, 0, k), -1)
    unit = wrap(np.eye(m, k, dtype=LU._array.dtype))
    return add(lower, unit), triu(narrow(LU, -2, 0, k))


def _permutation(pivots: np.ndarray, m: int, dtype: np.dtype) -> np.ndarray:
    """Return the matrices P that rows exchanged one after another come from."""
    if pivots.size and not 1 <= pivots.min() <= pivots.max() <= m:
        raise RuntimeError(
            f"pivots must be rows of the matrix, from 1 to {m}, as lu_factor returns them, got "
            f"{pivots.min()} to {pivots.max()}"
        )
    lead = pivots.shape[:-1]
    p = np.zeros((*lead, m, m), dtype)
    for at in np.ndindex(lead):
        order = np.arange(m)
        for row, other in enumerate(pivots[at] - 1):
            order[[row, other]] = order[[other, row]]
        p[at][order, np.arange(m)] = 1
    return p


@names_arguments
def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> Any:
    """Return (P, L, U) of what `lu_factor` returned; empty what is not asked for."""
    check_arguments("lu_unpack", LU_data=LU_data, LU_pivots=LU_pivots)
    if unpack_pivots and LU_pivots._array.dtype != np.int32:
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 "
            "dtype. Note: this function is intended to be used with the output produced by "
            "torch.linalg.lu_factor"
        )
    dtype = plain(LU_data._array).dtype
    nothing = wrap(np.empty(0, dtype))
    p = lower = upper = nothing
    if unpack_pivots:
        p = wrap(_permutation(LU_pivots._array, LU_data._array.shape[-2], dtype))
    if unpack_data:
        lower, upper = _halves(LU_data)
    return _LU_UNPACK(p, lower, upper)


def lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    """Return X with A X = B, given what `lu_factor` returned for A.

    Parameters
    ----------
    LU : (..., n, n)
    pivots : (..., n)
    B : (..., n, k); if not ``left`` (..., k, n)
    left : bool
        Else X A = B.
    adjoint : bool
        Take A^H in A's place.
    """
    check_arguments("linalg_lu_solve", LU=LU, pivots=pivots, B=B)
    check_same_dtype("linalg.lu_solve", LU, B)
    if not left:
        flipped = lu_solve(LU, pivots, _adjoint(B), adjoint=not adjoint)
        return _adjoint(flipped)
    n = LU._array.shape[-1]
    p = wrap(_permutation(pivots._array, n, LU._array.dtype))
    if adjoint:
        first = solve_triangular(_adjoint(LU), B, upper=False)
        second = solve_triangular(_adjoint(LU), first, upper=True, unitriangular=True)
        return matmul(p, second)
    rows = matmul(transpose(p, -2, -1), B)
    first = solve_triangular(LU, rows, upper=False, unitriangular=True)
    return solve_triangular(LU, first, upper=True)


_adjoint = adjoint
