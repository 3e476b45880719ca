"""The LKJ distribution of correlation matrices, as their Cholesky factors.

References
----------
D. Lewandowski, D. Kurowicka and H. Joe, "Generating random correlation matrices based on vines and
extended onion method", Journal of Multivariate Analysis 100(9), 2009.
"""

from __future__ import annotations

import math
from typing import Any

from convcore._creation import arange
from convcore._tensor import Tensor
from convcore.autograd.grad_mode import no_grad
from convcore.distributions import constraints
from convcore.distributions.beta import Beta
from convcore.distributions.distribution import Distribution
from convcore.distributions.utils import broadcast_all, finfo, standard_normal
from convcore.functions.gamma import lgamma, mvlgamma
from convcore.functions.linalg.norms import vector_norm

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Lower triangular L for which L L' is a correlation matrix of density ~ det ** (eta - 1).

    Parameters
    ----------
    dim : int, at least 2
        The rows and columns of the matrices.
    concentration : Tensor or number
        eta; at 1 all correlation matrices are equally likely, above it those near the identity.
    validate_args : bool or None
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _parameters = ("concentration",)

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None):
        if dim < 2:
            raise ValueError(
                f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            )
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(LKJCholesky, _instance)
        new.dim = self.dim
        return super().expand(batch_shape, new)

    def _squares(self) -> Beta:
        """Return the distribution of the squared length of each row left of the diagonal."""
        row = arange(self.dim, dtype=self.concentration.dtype)
        before = (row - 1).clamp(min=0)  # the first row's is multiplied by zeros
        rest = (self.concentration + 0.5 * (self.dim - 2)).unsqueeze(-1) - 0.5 * before
        return Beta(before + 0.5, rest)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        # The onion method, a row after the other: a point on a sphere, drawn in towards the centre.
        with no_grad():
            squares = self._squares().sample(sample_shape).unsqueeze(-1)
            drawn = standard_normal(self._extended_shape(sample_shape), squares).tril(-1)
            directions = drawn / vector_norm(drawn, dim=-1, keepdim=True)
            directions[..., 0, :] = 0.0  # of which the norm is 0
            left = squares.sqrt() * directions
            rest = 1 - left.pow(2).sum(-1)
            return left + rest.clamp(min=float(finfo(left).tiny)).sqrt().diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        row = arange(2, self.dim + 1, dtype=self.concentration.dtype)
        power = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - row
        return (power * diagonal.log()).sum(-1) - self._log_normalizer()

    def _log_normalizer(self) -> Tensor:
        """Return the log of the integral over all factors (p. 1999 of the paper)."""
        less = self.dim - 1
        alpha = self.concentration + 0.5 * less
        return 0.5 * less * math.log(math.pi) + mvlgamma(alpha - 0.5, less) - lgamma(alpha) * less
