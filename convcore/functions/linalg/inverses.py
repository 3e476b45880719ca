"""Inverses, determinants and solutions of linear systems.

References
----------
M. B. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
differentiation", 2008: the gradients.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore.autograd.node import record
from convcore.functions._support.arguments import check_arguments
from convcore.functions._support.errstate import ignore_errstate
from convcore.functions._support.matrix_checks import (
    check_equation,
    check_same_dtype,
    check_square,
    each,
    lapack,
    raise_first,
)
from convcore.functions.elementwise.arithmetic import add, conj, mul, neg, sub
from convcore.functions.elementwise.complex_parts import imag
from convcore.functions.elementwise.elementwise import log
from convcore.functions.indexing.order import _return_type
from convcore.functions.products.matmul import matmul
from convcore.functions.reductions.reduce import sum
from convcore.functions.shapes.broadcast import broadcast_shape, cast, sum_to
from convcore.functions.shapes.shape import adjoint, squeeze, transpose, unsqueeze

__all__ = ["det", "inv", "inv_ex", "logdet", "slogdet", "solve", "solve_ex"]

_INV_EX = _return_type("linalg_inv_ex", "inverse", "info")
_SLOGDET = _return_type("linalg_slogdet", "sign", "logabsdet")
_SOLVE_EX = _return_type("linalg_solve_ex", "result", "info")

Needs = tuple[bool, ...]


def zero_pivot(matrix: np.ndarray) -> int:
    """Return the number, from 1, of the first zero on the diagonal of U of P L U.

    It is 0 where NumPy inverts the matrix.
    """
    from scipy.linalg import get_lapack_funcs

    try:
        np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        # NumPy and SciPy have each their own LAPACK, and may round the last pivot otherwise.
        (getrf,) = get_lapack_funcs(("getrf",), (matrix,))
        return int(getrf(matrix)[2]) or len(matrix)
    return 0


def inv(A: Tensor) -> Tensor:
    """Return the inverse of each matrix.

    Parameters
    ----------
    A : (..., n, n)

    Raises
    ------
    LinAlgError
        A matrix is singular.
    RuntimeError
        The matrices are not square, or not of a floating-point or complex dtype.

    Notes
    -----
    With the inverse Y the gradient is -Y^H grad Y^H (Giles 2008, 2.2.3).

    Examples
    --------
    >>> import convcore
    >>> inv(convcore.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    inverse, info = inv_ex(A)
    raise_first("linalg.inv", info._array, _singular)
    return inverse


def _singular(order: int) -> str:
    return (
        f"The diagonal element {order} is zero, the inversion could not be completed because the "
        "input matrix is singular."
    )


def inv_ex(A: Tensor, *, check_errors: bool = False) -> Any:
    """Return (inverse, info); info is 0, or the number of the diagonal element that was zero.

    The inverse of a singular matrix is NaN; with ``check_errors`` it is an error, as in `inv`.
    """
    check_square("linalg.inv", A)
    array = A._array
    try:
        inverse = ignore_errstate(np.linalg.inv, array)
        info = np.zeros(array.shape[:-2], np.int32)
    except np.linalg.LinAlgError:
        info = each(zero_pivot, array)
        inverse = _where_regular(np.linalg.inv, info, array)
    if check_errors:
        raise_first("linalg.inv_ex", info, _singular)
    out = _INV_EX(wrap(_or_nan(inverse, array)), wrap(info))
    record("LinalgInvExBackward0", (A,), tuple(out), _inv_backward, (out.inverse,))
    return out


def _where_regular(solver: Any, info: np.ndarray, a: np.ndarray, *rest: np.ndarray) -> np.ndarray:
    """Return a solver's results, NaN where ``info`` says that the matrix is singular."""
    unit = np.eye(a.shape[-1], dtype=a.dtype)
    singular = (info != 0)[..., None, None]
    found = ignore_errstate(solver, np.where(singular, unit, a), *rest)
    return np.where(singular, found.dtype.type(math.nan), found)


def _or_nan(found: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Return a solver's results, NaN where a matrix holds one: LAPACK may leave its rows out."""
    unknown = np.isnan(a).any((-2, -1))
    if not unknown.any():
        return found
    return np.where(unknown[..., None, None], found.dtype.type(math.nan), found)


def _inv_backward(needs: Needs, grads: tuple, y: Tensor) -> Tensor | None:
    if grads[0] is None:
        return None
    back = adjoint(y)
    return neg(matmul(back, matmul(grads[0], back)))


def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """Return X with A X = B, or X A = B if not ``left``.

    Parameters
    ----------
    A : (..., n, n)
    B : (..., n, k), or vectors: (n,), or (..., n) with exactly the leading axes of A
        Leading axes broadcast.  If not ``left``: (..., k, n).

    Raises
    ------
    LinAlgError
        A matrix is singular.
    RuntimeError
        Sizes or dtypes that do not go together.

    Notes
    -----
    The gradients are G = A^-H grad for B and -G X^H for A (Giles 2008, 2.3.1).
    """
    result, info = _solve(A, B, left, "linalg.solve")
    says = "The solver failed because the input matrix is singular."
    raise_first("torch.linalg.solve", info._array, lambda order: says)
    return result


def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> Any:
    """Return (result, info); for a singular A, NaN and the 1-based index of the zero pivot."""
    if check_errors:
        solve(A, B, left=left)
    return _SOLVE_EX(*_solve(A, B, left, "linalg.solve"))


def _solve(A: Tensor, B: Tensor, left: bool, function: str) -> tuple[Tensor, Tensor]:
    check_arguments(function.replace(".", "_"), A=A, B=B)
    check_square(function, A)
    check_same_dtype(function, A, B)
    vector = B._array.ndim == 1 or B._array.shape == A._array.shape[:-1]
    columns = unsqueeze(B, -1) if vector else B
    check_equation(function, A, columns, left)
    if left:
        result, info = _solved(A, columns)
        return squeeze(result, -1) if vector else result, info
    result, info = _solved(transpose(A, -2, -1), transpose(columns, -2, -1))
    return transpose(result, -2, -1), info


def _solved(A: Tensor, B: Tensor) -> tuple[Tensor, Tensor]:
    """Return X and info for stacks of columns."""
    a, b = A._array, B._array
    lead = broadcast_shape(a.shape[:-2], b.shape[:-2])
    a = np.broadcast_to(a, (*lead, *a.shape[-2:]))
    b = np.broadcast_to(b, (*lead, *b.shape[-2:]))
    try:
        x, info = ignore_errstate(np.linalg.solve, a, b), np.zeros(lead, np.int32)
    except np.linalg.LinAlgError:
        info = each(zero_pivot, a)
        x = _where_regular(np.linalg.solve, info, a, b)
    out = wrap(_or_nan(x, a))
    record("LinalgSolveExBackward0", (A, B), out, _solve_backward, (A, B, out))
    return out, wrap(info)


def _solve_backward(needs: Needs, grad: Tensor, A: Tensor, B: Tensor, X: Tensor) -> tuple:
    back, _ = _solved(adjoint(A), grad)
    grad_a = sum_to(neg(matmul(back, adjoint(X))), A._array.shape) if needs[0] else None
    return grad_a, sum_to(back, B._array.shape) if needs[1] else None


# Determinants


def det(A: Tensor) -> Tensor:
    """Return the determinant of each matrix.

    Parameters
    ----------
    A : (..., n, n)

    Returns
    -------
    (...)

    Notes
    -----
    The gradient is grad conj(det A) A^-H (Giles 2008, 2.2.4).  If a matrix is
    nearly singular, it is computed from singular values, and has a derivative; that one has none.
    """
    check_square("linalg.det", A, kernel="lu_cpu")
    out = wrap(np.asarray(lapack("linalg.det", np.linalg.det, A._array), A._array.dtype))
    record("LinalgDetBackward0", (A,), out, _det_backward, (A, out))
    return out


def _det_backward(needs: Needs, grad: Tensor, A: Tensor, d: Tensor) -> Tensor:
    inverse = inv_ex(A).inverse
    if _nearly_singular(A._array, inverse._array):
        return mul(_as_matrix(grad), conj(_cofactors(A)))
    return mul(_as_matrix(mul(grad, conj(d))), adjoint(inverse))


def _nearly_singular(a: np.ndarray, inverse: np.ndarray) -> bool:
    """Return whether a matrix has no inverse, or only one with less than half of its digits."""
    norms = [np.linalg.norm(one, axis=(-2, -1)) for one in (a, inverse)]
    condition = ignore_errstate(np.multiply, *norms)
    return not bool((condition < np.finfo(a.dtype).eps ** -0.5).all())  # not NaN either


def _as_matrix(x: Tensor) -> Tensor:
    return unsqueeze(unsqueeze(x, -1), -1)


def _cofactors(A: Tensor) -> Tensor:
    """Return the cofactors of matrices of any rank, once differentiable.

    With A = U diag(s) V^H, and U and V constants, det A = det U det V^H det B of B = U^H A V, which
    is diag(s) here.  Let p_ij be the product of all s but s_i and s_j.  Near diag(s) the cofactors
    of B are, but for terms of second order, prod_{k != i} s_k + sum_{j != i} p_ij (B_jj - s_j) on
    the diagonal and -p_ij B_ji elsewhere.
    """
    u, s, vh = np.linalg.svd(A._array)
    one = np.eye(s.shape[-1], dtype=bool)
    others = np.where(one, 1, s[..., None, :]).prod(-1)
    pairs = [np.where(one | row, 1, s[..., None, :]).prod(-1) for row in one]
    p = wrap(np.where(one, 0, np.stack(pairs, -2)).astype(A._array.dtype))
    b = matmul(matmul(adjoint(wrap(u)), A), adjoint(wrap(vh)))
    moved = mul(sub(b, wrap(s[..., None] * one)), wrap(one))
    shares = matmul(p, sum(moved, -1, keepdim=True))
    on_diagonal = mul(add(wrap(others[..., None].astype(p._array.dtype)), shares), wrap(one))
    cofactors = sub(on_diagonal, mul(p, transpose(b, -2, -1)))
    phase = np.asarray(np.linalg.det(u) * np.linalg.det(vh))[..., None, None]
    return matmul(matmul(wrap(u.conj() * phase), cofactors), wrap(vh.conj()))


def slogdet(A: Tensor) -> Any:
    """Return (sign, logabsdet): the determinant's sign, or phase, and the log of its size.

    Parameters
    ----------
    A : (..., n, n)

    Notes
    -----
    With t = tr(A^-1 dA), d log|det| is Re t and d sign is i sign Im t.  Of a singular matrix the
    sign is 0 and the logarithm -inf.
    """
    check_square("linalg.slogdet", A)
    array = A._array
    sign, size = lapack("linalg.slogdet", np.linalg.slogdet, array)
    real = array.real.dtype
    out = _SLOGDET(wrap(np.asarray(sign, array.dtype)), wrap(np.asarray(size, real)))
    record("LinalgSlogdetBackward0", (A,), tuple(out), _slogdet_backward, (A, out[0]))
    return out


def _slogdet_backward(needs: Needs, grads: tuple, A: Tensor, sign: Tensor) -> Tensor | None:
    grad_sign, grad_size = grads
    is_complex = sign._array.dtype.kind == "c"
    total = None if grad_size is None else cast(grad_size, sign._array.dtype)
    if grad_sign is not None and is_complex:
        turn = mul(imag(mul(conj(grad_sign), sign)), 1j)
        total = neg(turn) if total is None else sub(total, turn)
    if total is None:
        return None
    return mul(_as_matrix(total), adjoint(inv_ex(A).inverse))


def logdet(A: Tensor) -> Tensor:
    """Return the logarithm of the determinant of each matrix; NaN where it is negative."""
    check_square("logdet", A)
    sign, size = slogdet(A)
    if A._array.dtype.kind == "c":
        return log(sign) + size
    return size + log(sign.detach())
