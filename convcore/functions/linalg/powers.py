"""Powers and exponentials of matrices, chains of products, and products of vectors.

References
----------
A. H. Al-Mohy and N. J. Higham, "Computing the Frechet derivative of the matrix exponential, with an
application to condition number estimation", SIAM J. Matrix Anal. Appl. 30(4), 2009: the block
matrix that holds the exponential's gradient.
T. H. Cormen et al., "Introduction to Algorithms", section 14.2: the order of a chain of products.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, wrap
from convcore.autograd.node import record
from convcore.engine.integers import as_int
from convcore.engine.runtime.checks import plain
from convcore.functions import products, slicing
from convcore.functions._support.arguments import check_arguments, check_kind, check_optional
from convcore.functions._support.matrix_checks import check_square
from convcore.functions.arithmetic import conj, mul
from convcore.functions.elementwise import pow
from convcore.functions.joining import cat
from convcore.functions.linalg.inverses import inv
from convcore.functions.matmul import matmul, mm
from convcore.functions.piecewise import zeros_like
from convcore.functions.reduce import sum
from convcore.functions.shape import adjoint, reshape, unsqueeze
from convcore.functions.slicing import narrow

__all__ = ["cross", "diagonal", "matrix_exp", "matrix_power", "multi_dot", "vander", "vecdot"]

Needs = tuple[bool, ...]


def matrix_exp(A: Tensor) -> Tensor:
    """Return the matrix exponential I + A + A^2 / 2! + ... of each matrix.

    Parameters
    ----------
    A : (..., n, n)

    Notes
    -----
    The gradient is the upper right block of the exponential of [[A^H, grad], [0, A^H]] (Al-Mohy and
    Higham 2009, equation 1.4).
    """
    from scipy.linalg import expm

    check_square("linalg.matrix_exp", A)
    array = A._array
    out = wrap(np.asarray(expm(array) if array.size else array.copy(), array.dtype))
    record("LinalgMatrixExpBackward0", (A,), out, _exp_backward, (A,))
    return out


def _exp_backward(needs: Needs, grad: Tensor, A: Tensor) -> Tensor:
    back, n = adjoint(A), A._array.shape[-1]
    above = cat([back, grad], -1)
    below = cat([zeros_like(back), back], -1)
    whole = matrix_exp(cat([above, below], -2))
    return narrow(narrow(whole, -2, 0, n), -1, n, n).clone()


@names_arguments
def matrix_power(A: Tensor, n: int) -> Tensor:
    """Return each square matrix to an integer power, of its inverse if ``n`` is negative."""
    check_arguments("linalg_matrix_power", A=A)
    n = as_int(n)
    shape = A._array.shape
    if len(shape) < 2 or shape[-2] != shape[-1] or n < 0:
        check_square("linalg.matrix_power", A)
    if n == 0:
        one = np.eye(shape[-1], dtype=plain(A._array).dtype)
        return wrap(np.broadcast_to(one, shape).copy())
    if n < 0:
        return matrix_power(inv(A), -n)
    out, square = None, A
    while n:
        if n & 1:
            out = square if out is None else matmul(out, square)
        n >>= 1
        if n:
            square = matmul(square, square)
    assert out is not None
    return out.clone() if out is A else out


@names_arguments
def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """Return the product of two or more matrices, multiplied in the cheapest order.

    Parameters
    ----------
    tensors : matrices; the first and the last may be vectors, a row and a column

    Raises
    ------
    RuntimeError
        Fewer than two, or sizes that do not go together.
    """
    given = list(tensors)
    if len(given) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(given)}")
    for at, one in enumerate(given):
        check_optional("multi_dot", **{f"tensors[{at}]": one})
        rank = one._array.ndim
        if 0 < at < len(given) - 1 and rank != 2:
            raise RuntimeError(f"multi_dot(): tensor {at} must be 2D but got {rank}D")
        if rank not in (1, 2):
            name = "the first tensor" if at == 0 else "the last tensor"
            raise RuntimeError(f"multi_dot(): {name} must be 1D or 2D but got {rank}D")
    lead = list(given[0]._array.shape[:-1])
    rest = list(given[-1]._array.shape[1:])
    if given[0]._array.ndim == 1:
        given[0] = unsqueeze(given[0], 0)
    if given[-1]._array.ndim == 1:
        given[-1] = unsqueeze(given[-1], 1)
    out = _chain(given, 0, len(given) - 1, _splits(given))
    return reshape(out, (*lead, *rest))


def _splits(matrices: list[Tensor]) -> dict[tuple[int, int], int]:
    """Return for each run of matrices after which of them to split it."""
    sizes = [one._array.shape[0] for one in matrices] + [matrices[-1]._array.shape[1]]
    cost: dict[tuple[int, int], int] = {(i, i): 0 for i in range(len(matrices))}
    best = {}
    for length in range(1, len(matrices)):
        for i in range(len(matrices) - length):
            j = i + length
            cost[i, j], best[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            )
    return best


def _chain(matrices: list[Tensor], i: int, j: int, splits: dict) -> Tensor:
    if i == j:
        return matrices[i]
    k = splits[i, j]
    return mm(_chain(matrices, i, k, splits), _chain(matrices, k + 1, j, splits))


# Vectors


def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """Return the cross product of vectors of three elements that lie along an axis."""
    check_arguments("linalg_cross", input=input, other=other)
    return products.cross(input, other, dim)


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Return the sums of conj(x) * y along an axis; shapes broadcast."""
    check_arguments("linalg_vecdot", x=x, y=y)
    return sum(mul(conj(x), y), dim)


@names_arguments
def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return a view of each matrix' diagonal."""
    return slicing.diagonal(A, offset, dim1, dim2)


@names_arguments
def vander(x: Tensor, N: int | None = None) -> Tensor:
    """Return the powers 0, 1 ... N - 1 of each element along a new last axis.

    Parameters
    ----------
    x : (..., n)
    N : int
        n if None.

    Raises
    ------
    RuntimeError
        x has no axis, or N is below 2.
    """
    check_arguments("linalg_vander", x=x)
    check_kind("vander", x, "fciu")
    if x._array.ndim < 1:
        raise RuntimeError("Expected dim to be at least 1 but got 0")
    if N is not None and N <= 1:
        raise RuntimeError("N must be greater than 1.")
    n = x._array.shape[-1] if N is None else N
    is_whole = x._array.dtype.kind in "iu"  # whose powers are int64
    exponents = wrap(np.arange(n).astype(np.int64 if is_whole else x._array.dtype))
    return pow(unsqueeze(x, -1), exponents)
