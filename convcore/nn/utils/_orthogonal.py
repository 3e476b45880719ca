"""Orthogonal matrices computed from any: exponential, Cayley transform, Householder reflections."""

from __future__ import annotations

import math

import numpy as np

from convcore._creation import eye, zeros_like
from convcore._tensor import Tensor, wrap
from convcore.functions.joining import cat
from convcore.functions.linalg.inverses import solve
from convcore.functions.matmul import matmul
from convcore.nn.init import orthonormal
from convcore.nn.modules.module import Module

_MAPS = ("matrix_exp", "cayley", "householder")
# With a norm of at most 1/2, this many terms of the exponential's series are exact in float64.
_TERMS = 16


class Orthogonal(Module):
    """The parametrization of `convcore.nn.utils.parametrizations.orthogonal`."""

    base: Tensor | None

    def __init__(self, weight: Tensor, orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        if orthogonal_map not in _MAPS:
            allowed = ", ".join(f'"{name}"' for name in _MAPS)
            raise ValueError(f"orthogonal_map has to be one of {allowed}. Got: {orthogonal_map}")
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        self.use_trivialization = use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def _get_name(self) -> str:
        return "_Orthogonal"

    def forward(self, x: Tensor) -> Tensor:
        """Return the orthogonal matrix of ``x``, (..., rows, columns)."""
        wide = x.shape[-2] < x.shape[-1]
        x = x.mT if wide else x
        q = _reflected(x) if self.orthogonal_map == "householder" else self._of_skew(x)
        if self.use_trivialization and self.base is not None:
            q = matmul(self.base, q)
        return q.mT if wide else q

    def _of_skew(self, x: Tensor) -> Tensor:
        *_, n, k = x.shape
        x = x.tril()
        if n != k:
            x = cat([x, x.new_zeros((*x.shape[:-2], n, n - k))], dim=-1)
        skew = x - x.mT.conj()
        return (_exponential if self.orthogonal_map == "matrix_exp" else _cayley)(skew)[..., :k]

    def right_inverse(self, q: Tensor) -> Tensor:
        """Return what ``q``, made orthogonal, is computed from; with a new base if there is one."""
        if q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of "
                f"shape {q.shape}."
            )
        start, wide = q, q.shape[-2] < q.shape[-1]
        q = q.mT if wide else q
        if not self.use_trivialization:
            return self._inverted(q, wide)
        *_, n, k = q.shape
        if n != k:
            more = q.new_empty((*q.shape[:-2], n, n - k)).normal_()
            self.base = orthonormal(cat([q, more], dim=-1))
        else:
            self.base = q.clone() if _is_orthogonal(q._array) else orthonormal(q)
        minus = zeros_like(start)
        diagonal = np.arange(k)
        minus._array[..., diagonal, diagonal] = -1
        return minus

    def _inverted(self, q: Tensor, wide: bool) -> Tensor:
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley "
                "parametrizations when use_trivialization=False."
            )
        from scipy.linalg import qr  # slow to import, and rarely needed

        found = np.empty_like(q._array)
        for index in np.ndindex(found.shape[:-2]):
            (packed, tau), _ = qr(q._array[index], mode="raw")
            signs = np.sign(np.diagonal(packed)) * np.where(tau == 0, -1, 1)
            np.fill_diagonal(packed, signs)
            found[index] = packed
        made = wrap(found)
        return made.mT if wide else made


def _is_orthogonal(q: np.ndarray) -> bool:
    product = matmul(wrap(q).mT.conj(), wrap(q))._array
    bound = 10 * q.shape[-2] * np.finfo(q.dtype).eps
    return bool(np.allclose(product, np.eye(q.shape[-1], dtype=q.dtype), atol=bound))


def _exponential(a: Tensor) -> Tensor:
    """Return the matrix exponential: its series of a small part, squared again and again."""
    largest = float(np.abs(a._array).sum(-1).max(initial=0))
    squarings = max(0, math.ceil(math.log2(largest)) + 1) if largest > 0.5 else 0
    small = a / 2.0**squarings
    identity = eye(a.shape[-1], dtype=a.dtype)
    result = identity
    for n in range(_TERMS, 0, -1):
        result = identity + matmul(small, result) / n
    for _ in range(squarings):
        result = matmul(result, result)
    return result


def _cayley(a: Tensor) -> Tensor:
    identity = eye(a.shape[-1], dtype=a.dtype)
    return solve(identity - a / 2, identity + a / 2)


def _reflected(x: Tensor) -> Tensor:
    """Return the product of the Householder reflections along the columns below the diagonal."""
    *_, n, k = x.shape
    identity = eye(n, k, dtype=x.dtype)
    below = x.tril(-1)
    factors = 2 / (1 + (below * below).sum(dim=-2))
    axes = below + identity
    result = identity
    for column in range(k - 1, -1, -1):
        axis = axes[..., column : column + 1]
        scale = factors[..., column].reshape(*x.shape[:-2], 1, 1)
        result = result - scale * matmul(axis, matmul(axis.mT, result))
    signs = x.detach().diagonal(dim1=-2, dim2=-1).to(x.dtype).trunc()
    return result * signs.unsqueeze(-2)
