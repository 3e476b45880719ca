"""Singular values, eigenvalues, and their vectors.

References
----------
M. B. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
differentiation", 2008: eigenvalues and singular values.
J. Townsend, "Differentiating the singular value decomposition", 2016: singular vectors.
C. Boeddeker et al., "On the computation of complex-valued gradients with application to
statistically optimum beamforming", arXiv:1701.00392, 2017: complex eigenvectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, scalar_name, wrap
from convcore.autograd.node import needs_history, record
from convcore.functions._support.arguments import check_arguments
from convcore.functions._support.matrix_checks import check_matrix, check_square, lapack
from convcore.functions.elementwise.arithmetic import add, conj, div, mul, sub
from convcore.functions.elementwise.complex_parts import real
from convcore.functions.indexing.order import _return_type
from convcore.functions.linalg.inverses import solve
from convcore.functions.products.matmul import matmul
from convcore.functions.shapes.broadcast import cast
from convcore.functions.shapes.convert import clone
from convcore.functions.shapes.shape import adjoint, unsqueeze
from convcore.functions.shapes.slicing import diag_embed, diagonal, narrow

__all__ = ["eig", "eigh", "eigvals", "eigvalsh", "svd", "svdvals"]

_EIG = _return_type("linalg_eig", "eigenvalues", "eigenvectors")
_EIGH = _return_type("linalg_eigh", "eigenvalues", "eigenvectors")
_SVD = _return_type("linalg_svd", "U", "S", "Vh")

Needs = tuple[bool, ...]


def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> Any:
    """Return (U, S, Vh) with U diag(S) Vh = A, of each matrix; S falls.

    Parameters
    ----------
    A : (..., m, n)
    full_matrices : bool
        Whether U is (..., m, m) and Vh (..., n, n), or both have k = min(m, n) vectors.
    driver : None
        PyTorch's choice on a GPU.

    Raises
    ------
    LinAlgError
        The iteration does not converge.

    Notes
    -----
    The vectors' gradients exist where the singular values differ, and where the loss does not
    depend on their signs or phases; of the first k vectors alone (Townsend 2016).
    """
    check_matrix("linalg.svd", A, kernel="linalg_svd_cpu")
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with "
            "cuSOLVER backend."
        )
    found = lapack("linalg.svd", np.linalg.svd, A._array, full_matrices)
    out = _SVD(*(wrap(np.ascontiguousarray(one)) for one in found))
    record("LinalgSvdBackward0", (A,), tuple(out), _svd_backward, tuple(out))
    return out


def _svd_backward(needs: Needs, grads: tuple, U: Tensor, S: Tensor, Vh: Tensor) -> Tensor | None:
    if all(grad is None for grad in grads):
        return None
    grad_u, _, grad_v = grads
    m, n, k = U._array.shape[-2], Vh._array.shape[-1], S._array.shape[-1]
    U, Vh = narrow(U, -1, 0, k), narrow(Vh, -2, 0, k)
    grad_u = None if grad_u is None else narrow(grad_u, -1, 0, k)
    grad_v = None if grad_v is None else narrow(grad_v, -2, 0, k)
    total = _between(grads[1], grad_u, grad_v, U, S, Vh)
    total = None if total is None else matmul(U, matmul(total, Vh))
    if grad_u is not None and m > k:
        outside = sub(grad_u, matmul(U, matmul(adjoint(U), grad_u)))
        total = _sum(total, matmul(div(outside, unsqueeze(S, -2)), Vh))
    if grad_v is not None and n > k:
        outside = sub(grad_v, matmul(matmul(grad_v, adjoint(Vh)), Vh))
        total = _sum(total, matmul(U, div(outside, unsqueeze(S, -1))))
    return total


def _sum(x: Tensor | None, y: Tensor) -> Tensor:
    return y if x is None else add(x, y)


def _between(
    grad_s: Tensor | None, grad_u: Tensor | None, grad_v: Tensor | None, *factors: Tensor
) -> Tensor | None:
    """Return what of the gradient lies between U and Vh, a (..., k, k)."""
    U, S, Vh = factors
    across, down = unsqueeze(S, -2), unsqueeze(S, -1)
    gaps = _off_diagonal(mul(sub(across, down), add(across, down)))
    total = None
    if grad_s is not None:
        total = cast(diag_embed(grad_s), U._array.dtype)
    if grad_u is not None:
        turn = _skew(matmul(adjoint(U), grad_u))
        total = _sum(total, mul(div(turn, gaps), across))
        if U._array.dtype.kind == "c":
            total = add(total, diag_embed(div(diagonal(turn, 0, -2, -1), mul(S, 2))))
    if grad_v is not None:
        turn = _skew(matmul(Vh, adjoint(grad_v)))
        total = _sum(total, mul(down, div(turn, gaps)))
    return total


def _skew(x: Tensor) -> Tensor:
    return sub(x, adjoint(x))


def _off_diagonal(gaps: Tensor) -> Tensor:
    """Return differences with ones on the diagonal, where there is nothing to divide."""
    return add(gaps, wrap(np.eye(gaps._array.shape[-1], dtype=gaps._array.dtype)))


def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """Return the singular values of each matrix, largest first; see `svd`."""
    if driver is not None or needs_history(A):
        return svd(A, False, driver=driver).S
    check_matrix("linalg.svd", A, kernel="linalg_svd_cpu")
    return wrap(lapack("linalg.svd", np.linalg.svd, A._array, compute_uv=False))


# Eigenvalues


@names_arguments
def eigh(A: Tensor, UPLO: str = "L") -> Any:
    """Return (eigenvalues, eigenvectors) of each hermitian matrix; the real values rise.

    Parameters
    ----------
    A : (..., n, n)
    UPLO : 'L' or 'U'
        The triangle that is read; the other is taken as its adjoint.

    Returns
    -------
    (..., n) of a real dtype, and (..., n, n) with the vectors as columns

    Raises
    ------
    LinAlgError
        The iteration does not converge.

    Notes
    -----
    With E_ij = L_j - L_i the gradient is the hermitian part of V (diag(grad L) + V^H grad V / E)
    V^H (Giles 2008, 3.1).  It needs distinct eigenvalues where that of the vectors is used.
    """
    check_arguments("linalg_eigh", A=A)
    if A._array.dtype.kind not in "fc":
        kind = scalar_name(A._array.dtype)
        raise NotImplementedError(f"\"linalg_eigh_cpu\" not implemented for '{kind}'")
    check_square("linalg.eigh", A, kernel="linalg_eigh_cpu")
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    found = lapack("linalg.eigh", np.linalg.eigh, A._array, UPLO.upper())
    out = _EIGH(*(wrap(np.ascontiguousarray(one)) for one in found))
    record("LinalgEighBackward0", (A,), tuple(out), _eigh_backward, tuple(out))
    return out


def _eigh_backward(needs: Needs, grads: tuple, L: Tensor, V: Tensor) -> Tensor | None:
    grad_l, grad_v = grads
    inner = None if grad_l is None else cast(diag_embed(grad_l), V._array.dtype)
    if grad_v is not None:
        gaps = _off_diagonal(sub(unsqueeze(L, -2), unsqueeze(L, -1)))
        inner = _sum(inner, div(mul(_skew(matmul(adjoint(V), grad_v)), 0.5), gaps))
    return None if inner is None else matmul(V, matmul(inner, adjoint(V)))


@names_arguments
def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """Return the eigenvalues of each hermitian matrix, smallest first; see `eigh`."""
    return eigh(A, UPLO).eigenvalues


def eig(A: Tensor) -> Any:
    """Return (eigenvalues, eigenvectors) of each square matrix, complex, in no order.

    Parameters
    ----------
    A : (..., n, n)

    Returns
    -------
    (..., n), and (..., n, n) with vectors of length 1 as columns

    Raises
    ------
    RuntimeError
        The matrix has infinities or NaN.

    Notes
    -----
    The gradient, of matrices that have n independent eigenvectors, is that of Boeddeker et al.
    (2017), equation 4.77, with the vectors' lengths held at 1.
    """
    return _eig(A, "linalg.eig")


def _eig(A: Tensor, function: str) -> Any:
    check_arguments(function.replace(".", "_"), A=A)
    if A._array.dtype.kind not in "fc":
        raise RuntimeError(f"Unknown Complex ScalarType for {scalar_name(A._array.dtype)}")
    check_square(function, A, kernel="linalg_eig_out_cpu")
    if not np.isfinite(A._array).all():
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
    dtype = np.result_type(A._array.dtype, np.complex64)
    found = lapack(function, np.linalg.eig, A._array)
    out = _EIG(*(wrap(np.ascontiguousarray(one, dtype)) for one in found))
    is_real = A._array.dtype.kind == "f"

    def backward(needs: Needs, grads: tuple, L: Tensor, V: Tensor) -> Tensor | None:
        whole = _eig_backward(grads, L, V)
        return clone(real(whole)) if is_real and whole is not None else whole

    record("LinalgEigBackward0", (A,), tuple(out), backward, tuple(out))
    return out


def _eig_backward(grads: tuple, L: Tensor, V: Tensor) -> Tensor | None:
    grad_l, grad_v = grads
    inner = None if grad_l is None else diag_embed(grad_l)
    back = adjoint(V)
    if grad_v is not None:
        turned = matmul(back, grad_v)
        lengths = cast(real(diagonal(turned, 0, -2, -1)), V._array.dtype)
        turned = sub(turned, mul(matmul(back, V), unsqueeze(lengths, -2)))
        turned = div(turned, conj(_off_diagonal(sub(unsqueeze(L, -2), unsqueeze(L, -1)))))
        inner = _sum(inner, sub(turned, diag_embed(diagonal(turned, 0, -2, -1))))
    return None if inner is None else solve(back, matmul(inner, back))


def eigvals(A: Tensor) -> Tensor:
    """Return the complex eigenvalues of each square matrix, in no order; see `eig`."""
    return _eig(A, "linalg.eigvals").eigenvalues
