"""The multivariate normal distribution."""

from __future__ import annotations

import math
from typing import Any

from convcore._tensor import Tensor
from convcore._tensor.creation import eye
from convcore._tensor.size import Size
from convcore.distributions import constraints
from convcore.distributions.distribution import Distribution
from convcore.distributions.utils import lazy_property, standard_normal
from convcore.functions.linalg import cholesky, cholesky_solve, inv, solve_triangular
from convcore.functions.products.matmul import matmul
from convcore.functions.shapes.broadcast import broadcast_shape

__all__ = ["MultivariateNormal"]


class MultivariateNormal(Distribution):
    """The multivariate normal distribution.

    Parameters
    ----------
    loc : Tensor (..., n)
        The mean.
    covariance_matrix, precision_matrix, scale_tril : Tensor (..., n, n)
        Exactly one of them: the covariance, its inverse, or its lower Cholesky factor.
    validate_args : bool or None
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True
    _parameters = (
        *("loc", "covariance_matrix", "precision_matrix", "scale_tril"),
        "_unbroadcasted_scale_tril",
    )

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        matrices = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        given = {name: value for name, value in matrices.items() if value is not None}
        if len(given) != 1:
            raise ValueError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be "
                "specified."
            )
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError(
                f"{name} must be at least two-dimensional, with optional leading batch dimensions"
            )
        batch = broadcast_shape(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand((*batch, *matrix.shape[-2:])))
        self.loc = loc.expand((*batch, loc.shape[-1]))
        super().__init__(batch, self.loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = _factor(name, matrix)

    def _expanded(self, name: str, batch_shape: Size) -> Tensor:
        value = getattr(self, name)
        if name == "_unbroadcasted_scale_tril":
            return value
        return super()._expanded(name, batch_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """Return the covariance's Cholesky factor."""
        factor = self._unbroadcasted_scale_tril
        return factor.expand((*self._batch_shape, *self._event_shape, *self._event_shape))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """Return the covariance."""
        factor = self._unbroadcasted_scale_tril
        whole = matmul(factor, factor.mT)
        return whole.expand((*self._batch_shape, *self._event_shape, *self._event_shape))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """Return the inverse of the covariance."""
        factor = self._unbroadcasted_scale_tril
        whole = cholesky_solve(eye(factor.shape[-1], dtype=factor.dtype), factor)
        return whole.expand((*self._batch_shape, *self._event_shape, *self._event_shape))

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        found = self._unbroadcasted_scale_tril.pow(2).sum(-1)
        return found.expand((*self._batch_shape, *self._event_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        drawn = standard_normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + _times(self._unbroadcasted_scale_tril, drawn)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        factor = self._unbroadcasted_scale_tril
        solved = solve_triangular(factor, (value - self.loc).unsqueeze(-1), upper=False)
        distance = solved.squeeze(-1).pow(2).sum(-1)
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + distance) - half_log_det(factor)

    def entropy(self) -> Tensor:
        constant = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        found = constant + half_log_det(self._unbroadcasted_scale_tril)
        return found.expand(self._batch_shape)


def _times(matrix: Tensor, vector: Tensor) -> Tensor:
    return matmul(matrix, vector.unsqueeze(-1)).squeeze(-1)


def _factor(name: str, matrix: Tensor) -> Tensor:
    """Return the Cholesky factor of the covariance."""
    if name == "scale_tril":
        return matrix
    return cholesky(matrix if name == "covariance_matrix" else inv(matrix))


def half_log_det(factor: Tensor) -> Tensor:
    """Return half the logarithm of the determinant of L L^T."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
