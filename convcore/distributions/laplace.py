"""The Laplace distribution."""

from __future__ import annotations

import math
from typing import Any

from convcore._creation import empty
from convcore._tensor import Tensor
from convcore.distributions import constraints
from convcore.distributions.distribution import Distribution
from convcore.distributions.utils import broadcast_all, finfo

__all__ = ["Laplace"]


class Laplace(Distribution):
    """The Laplace distribution of density exp(-|x - loc| / scale) / (2 scale).

    Parameters
    ----------
    loc, scale : Tensors or numbers that broadcast
    validate_args : bool or None
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _parameters = ("loc", "scale")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.pow(2)

    @property
    def stddev(self) -> Tensor:
        return 2**0.5 * self.scale

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        drawn = empty(self._extended_shape(sample_shape), dtype=self.loc.dtype)
        drawn.uniform_(float(finfo(drawn).eps) - 1, 1)
        return self.loc - self.scale * drawn.sign() * (-drawn.abs()).log1p()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        distance = value - self.loc
        return 0.5 - 0.5 * distance.sign() * (-distance.abs() / self.scale).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * (-2 * term.abs()).log1p()

    def entropy(self) -> Tensor:
        return 1 + math.log(2) + self.scale.log()
