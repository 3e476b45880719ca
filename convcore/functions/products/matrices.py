"""Linear algebra under the names that it has beside `matmul`: det, inverse, cholesky ...

They are those of convcore.linalg, which is loaded when one of them is called.
"""

from __future__ import annotations

from typing import Any

from convcore._tensor import Tensor
from convcore.functions.indexing.order import _return_type

__all__ = ["cholesky", "cholesky_solve", "det", "inverse", "logdet", "slogdet"]

_SLOGDET = _return_type("slogdet", "sign", "logabsdet")


def _linalg() -> Any:
    from convcore.functions import linalg

    return linalg


# Inverses and determinants


def inverse(input: Tensor) -> Tensor:
    """Return the inverse of each matrix, (..., n, n); see convcore.linalg.inv."""
    return _linalg().inv(input)


def det(input: Tensor) -> Tensor:
    """Return the determinant of each matrix, (..., n, n); see convcore.linalg.det."""
    return _linalg().det(input)


def logdet(input: Tensor) -> Tensor:
    """Return the logarithm of each determinant: -inf where it is 0, NaN where it is negative."""
    return _linalg().logdet(input)


def slogdet(input: Tensor) -> Any:
    """Return (sign, logabsdet) of each matrix, (..., n, n); see convcore.linalg.slogdet."""
    return _SLOGDET(*_linalg().slogdet(input))


# Decompositions


def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """Return the Cholesky factor of each matrix; see convcore.linalg.cholesky."""
    return _linalg().triangular.checked_cholesky(input, upper, "cholesky")


def cholesky_solve(input: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """Return X with A X = input, where L L^H = A, or L^H L = A if ``upper``."""
    return _linalg().cholesky_solve(input, L, upper)
