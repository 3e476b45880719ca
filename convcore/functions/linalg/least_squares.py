"""Pseudo-inverses and least squares.

References
----------
G. H. Golub and V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares
problems whose variables separate", SIAM J. Numer. Anal. 10(2), 1973: the gradient of pinv.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, wrap
from convcore.autograd.node import record
from convcore.functions._support.arguments import check_arguments, number
from convcore.functions._support.matrix_checks import check_matrix, lapack
from convcore.functions.elementwise.arithmetic import add, sub
from convcore.functions.indexing.order import _return_type
from convcore.functions.products.matmul import matmul
from convcore.functions.shapes.broadcast import broadcast_shape, fitted, sum_to
from convcore.functions.shapes.shape import adjoint, squeeze, unsqueeze

__all__ = ["lstsq", "pinv"]

_LSTSQ = _return_type("linalg_lstsq", "solution", "residuals", "rank", "singular_values")
_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")

Needs = tuple[bool, ...]


@names_arguments
def pinv(
    A: Tensor, *args: Any, atol: Any = None, rtol: Any = None, hermitian: bool = False, **older: Any
) -> Tensor:
    """Return the Moore-Penrose pseudo-inverse of each matrix.

    Parameters
    ----------
    A : (..., m, n)
    atol, rtol : numbers or Tensors
        Singular values up to max(atol, rtol * the largest) count as zero.  rtol is
        max(m, n) * eps where neither is given.
    hermitian : bool
        Each matrix equals its adjoint, and eigenvalues are computed instead.

    Returns
    -------
    (..., n, m)

    Notes
    -----
    ``rcond``, by position or name, is an older ``rtol``.  The gradient is that of Golub and Pereyra
    (1973), of matrices whose rank does not change nearby.
    """
    rtol = older.get("rcond", args[0] if args else rtol)
    _check_pinv(A)
    least = _tolerance(A._array, atol, rtol)
    if hermitian:
        s, u = lapack("linalg.pinv", np.linalg.eigh, A._array)
        vh, size = np.conj(np.swapaxes(u, -2, -1)), np.abs(s)
    else:
        u, s, vh = lapack("linalg.pinv", np.linalg.svd, A._array, full_matrices=False)
        size = s
    top = size.max(-1, keepdims=True, initial=0)
    kept = size > least(top)
    inverse = np.where(kept, 1 / np.where(kept, s, 1), 0).astype(s.dtype)
    out = matmul(adjoint(wrap(vh * inverse[..., None])), adjoint(wrap(u)))
    out = wrap(out._array)
    # A tolerance for each of several ranks makes more inverses than there are matrices.
    backward = fitted(lambda *args: (_pinv_backward(*args),), A)
    record("LinalgPinvBackward0", (A,), out, backward, (A, out))
    return out


def _tolerance(a: np.ndarray, atol: Any, rtol: Any) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function from the largest singular values, (..., 1), to what counts as zero."""
    if rtol is None:
        rtol = max(a.shape[-2:]) * np.finfo(a.dtype).eps if atol is None else 0.0
    least, share = (_plain(name, one) for name, one in (("atol", atol), ("rtol", rtol)))
    return lambda top: np.maximum(least, share * top)


def _plain(name: str, value: Any) -> Any:
    """Return a number, 0 for None, or the array of a Tensor with an axis for singular values."""
    if isinstance(value, Tensor):
        return value._array[..., None]
    return 0.0 if value is None else float(number("linalg.pinv", name, value))


def _check_pinv(A: Any) -> None:
    check_arguments("linalg_pinv", A=A)
    dtype = A._array.dtype
    if A._array.ndim < 2 or dtype.char not in "fdFD":
        kind = A.type().removeprefix("torch.").removesuffix("Tensor")
        raise RuntimeError(
            f"linalg.pinv({kind}{{{list(A._array.shape)}}}): expected a tensor with 2 or more "
            "dimensions of float, double, cfloat or cdouble types"
        )


def _pinv_backward(needs: Needs, grad: Tensor, A: Tensor, P: Tensor) -> Tensor:
    """Return the adjoint of dP = -P dA P + P P^H dA^H (I - A P) + (I - P A) dA^H P^H P."""
    g, back = adjoint(grad), adjoint(P)
    gp, pg = matmul(g, P), matmul(P, g)
    first = matmul(sub(gp, matmul(A, matmul(P, gp))), back)
    second = matmul(back, sub(pg, matmul(matmul(pg, P), A)))
    return sub(add(first, second), matmul(back, matmul(grad, back)))


def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> Any:
    """Return (solution, residuals, rank, singular_values) of the smallest ||A X - B||.

    Parameters
    ----------
    A : (..., m, n)
    B : (..., m, k), or (..., m) with exactly the leading axes of A
    rcond : number
        Singular values up to this times the largest count as zero; max(m, n) * eps if None.
    driver : 'gelsy' (the default), 'gelsd', 'gelss' or 'gels'
        LAPACK's routine.  gelsd and gelss give singular values and residuals; gels, for matrices
        of full rank, no rank.

    Notes
    -----
    The solution's gradients are those of pinv(A) B.
    """
    check_arguments("linalg_lstsq", A=A, B=B)
    check_matrix("torch.linalg.lstsq", A)
    driver = "gelsy" if driver is None else driver
    if driver not in _DRIVERS:
        raise RuntimeError(
            "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)"
        )
    vector = B._array.ndim == 1 or B._array.shape == A._array.shape[:-1]
    columns = unsqueeze(B, -1) if vector else B
    if A._array.shape[-2] != columns._array.shape[-2]:
        size = "-1" if vector else "-2"
        raise RuntimeError(f"torch.linalg.lstsq: input.size(-2) should match other.size({size})")
    x, rank, values = _solutions(A._array, columns._array, rcond, driver)
    out = wrap(x)
    record("LinalgLstsqBackward0", (A, columns), out, _lstsq_backward, (A, columns))
    residuals = _residuals(A, columns, out, rank) if driver != "gelsy" else _nothing(A)
    ranks = wrap(rank if driver != "gels" else np.empty(0, np.int64))
    sizes = wrap(values) if driver in ("gelsd", "gelss") else _nothing(A)
    return _LSTSQ(squeeze(out, -1) if vector else out, residuals, ranks, sizes)


def _nothing(A: Tensor) -> Tensor:
    return wrap(np.empty(0, A._array.real.dtype))


def _solutions(a: np.ndarray, b: np.ndarray, rcond: Any, driver: str) -> tuple:
    """Return the solutions, ranks and singular values of a batch."""
    from scipy.linalg import lstsq

    (m, n), k = a.shape[-2:], b.shape[-1]
    lead = broadcast_shape(a.shape[:-2], b.shape[:-2])
    rcond = np.finfo(a.dtype).eps * max(m, n) if rcond is None else rcond
    x = np.zeros((*lead, n, k), a.dtype)
    rank, values = np.zeros(lead, np.int64), np.zeros((*lead, min(m, n)), a.real.dtype)
    routine = "gelsy" if driver == "gels" else driver
    left, right = np.broadcast_to(a, (*lead, m, n)), np.broadcast_to(b, (*lead, m, k))
    for at in np.ndindex(lead) if min(m, n, k) else ():
        found = lstsq(left[at], right[at], rcond, lapack_driver=routine, check_finite=False)
        x[at], rank[at] = found[0], found[2]
        if found[3] is not None:
            values[at] = found[3]
    return x, rank, values


def _residuals(A: Tensor, B: Tensor, X: Tensor, rank: np.ndarray) -> Tensor:
    m, n = A._array.shape[-2:]
    if m <= n or (rank < n).any():
        return _nothing(A)
    distance = sub(matmul(A, X), B)._array
    return wrap(np.asarray(np.square(np.abs(distance)).sum(-2)))


def _lstsq_backward(needs: Needs, grad: Tensor, A: Tensor, B: Tensor) -> tuple:
    inverse = pinv(A)
    grad_a = None
    if needs[0]:
        grad_a = sum_to(_pinv_backward(needs, matmul(grad, adjoint(B)), A, inverse), A._array.shape)
    grad_b = sum_to(matmul(adjoint(inverse), grad), B._array.shape) if needs[1] else None
    return grad_a, grad_b
