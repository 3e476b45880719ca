"""QR factors.

References
----------
S. F. Walter and L. Lehmann, "Algorithmic differentiation of linear algebra functions with
application in optimum experimental design", arXiv:1001.1654, 2010: the gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore.autograd.node import record
from convcore.functions._support.matrix_checks import check_matrix, lapack
from convcore.functions.elementwise.arithmetic import add, sub
from convcore.functions.elementwise.piecewise import zeros_like
from convcore.functions.indexing.order import _return_type
from convcore.functions.linalg.triangular import half_lower, solve_triangular
from convcore.functions.products.matmul import matmul
from convcore.functions.shapes.joining import cat
from convcore.functions.shapes.shape import adjoint
from convcore.functions.shapes.slicing import narrow

__all__ = ["qr"]

_QR = _return_type("linalg_qr", "Q", "R")

Needs = tuple[bool, ...]


def qr(A: Tensor, mode: str = "reduced") -> Any:
    """Return (Q, R) with Q R = A, of each matrix; Q has orthonormal columns, R is triangular.

    Parameters
    ----------
    A : (..., m, n)
    mode : 'reduced', 'complete' or 'r'
        Q has min(m, n) columns; or m; or is empty, and has no gradient.

    Raises
    ------
    RuntimeError
        Another mode.

    Notes
    -----
    The gradient is that of Walter and Lehmann (2010): with M = R gR^H - gQ^H Q, of which the lower
    triangle is mirrored to a hermitian C, (gQ + Q C) R^-H.  It needs the first min(m, n) columns
    to be independent, and of complete matrices a square one.
    """
    check_matrix("linalg.qr", A, kernel="geqrf_cpu")
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', "
            "or 'complete'"
        )
    if mode == "r":
        r = lapack("linalg.qr", np.linalg.qr, A._array, "r")
        out = _QR(wrap(np.empty(0, A._array.dtype)), wrap(r))
    else:
        out = _QR(*map(wrap, lapack("linalg.qr", np.linalg.qr, A._array, mode)))

    def backward(needs: Needs, grads: tuple, A: Tensor, Q: Tensor, R: Tensor) -> Tensor | None:
        m, n = A._array.shape[-2:]
        if mode == "r":
            raise RuntimeError(
                "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. "
                "Please use linalg.qr(A, mode='reduced') if you are going to require gradients "
                "through linalg.qr."
            )
        if mode == "complete" and m > n:
            raise RuntimeError(
                "The QR decomposition is not differentiable when mode='complete' and nrows > ncols."
            )
        return _qr_backward(grads, A, Q, R)

    record("LinalgQrBackward0", (A,), tuple(out), backward, (A, *out))
    return out


def _qr_backward(grads: tuple, A: Tensor, Q: Tensor, R: Tensor) -> Tensor | None:
    if all(grad is None for grad in grads):
        return None
    grad_q, grad_r = (
        zeros_like(one) if grad is None else grad for grad, one in zip(grads, (Q, R), strict=True)
    )
    m, n = A._array.shape[-2:]
    if m >= n:
        return _tall_backward(grad_q, grad_r, Q, R)
    # A = [X | Y], R = [U | Q^H Y]: what Y gives goes through Q into the gradient of X.
    y, grad_v = narrow(A, -1, m, n - m), narrow(grad_r, -1, m, n - m)
    grad_q = add(grad_q, matmul(y, adjoint(grad_v)))
    left = _tall_backward(grad_q, narrow(grad_r, -1, 0, m), Q, narrow(R, -1, 0, m))
    return cat([left, matmul(Q, grad_v)], -1)


def _tall_backward(grad_q: Tensor, grad_r: Tensor, Q: Tensor, R: Tensor) -> Tensor:
    m = sub(matmul(R, adjoint(grad_r)), matmul(adjoint(grad_q), Q))
    lower = half_lower(m)  # of the diagonal, which is real in R, only the real part counts
    inner = add(grad_q, matmul(Q, add(lower, adjoint(lower))))
    return solve_triangular(adjoint(R), inner, upper=False, left=False)
