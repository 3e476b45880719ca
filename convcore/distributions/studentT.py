"""Student's t distribution."""

from __future__ import annotations

import math
from typing import Any

from convcore._tensor import Tensor
from convcore.distributions import constraints
from convcore.distributions.chi2 import Chi2
from convcore.distributions.distribution import Distribution
from convcore.distributions.utils import broadcast_all, standard_normal
from convcore.functions.gamma import digamma, lgamma
from convcore.functions.piecewise import where

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Student's t distribution of ``df`` degrees of freedom.

    Parameters
    ----------
    df, loc, scale : Tensors or numbers that broadcast
    validate_args : bool or None
    """

    arg_constraints = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True
    _parameters = ("df", "loc", "scale")

    def __init__(
        self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None
    ):
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, self._get_checked_instance(StudentT, _instance))
        new._chi2 = self._chi2.expand(batch_shape)
        return new

    @property
    def mean(self) -> Tensor:
        return where(self.df <= 1, math.nan, self.loc)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        found = self.scale.pow(2) * self.df / (self.df - 2)
        found = where(self.df > 2, found, math.inf)
        return where(self.df <= 1, math.nan, found)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        x = standard_normal(self._extended_shape(sample_shape), self.df)
        z = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * (x * (z / self.df).rsqrt())

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        y, half = (value - self.loc) / self.scale, 0.5 * self.df
        front = self.scale.log() + 0.5 * (self.df.log() + math.log(math.pi))
        front = front + lgamma(half) - lgamma(half + 0.5)
        return -0.5 * (self.df + 1.0) * (y**2.0 / self.df).log1p() - front

    def entropy(self) -> Tensor:
        half = 0.5 * self.df
        beta = lgamma(half) + math.lgamma(0.5) - lgamma(half + 0.5)
        tail = (half + 0.5) * (digamma(half + 0.5) - digamma(half))
        return self.scale.log() + tail + 0.5 * self.df.log() + beta
