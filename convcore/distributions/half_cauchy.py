"""The half-Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

from convcore._creation import as_tensor, full_like, zeros_like
from convcore._tensor import Tensor
from convcore.distributions import constraints
from convcore.distributions.cauchy import Cauchy
from convcore.distributions.transformed_distribution import TransformedDistribution, of_base
from convcore.distributions.transforms import AbsTransform
from convcore.functions.piecewise import where

__all__ = ["HalfCauchy"]


class HalfCauchy(TransformedDistribution):
    """The half-Cauchy distribution: absolute values of Cauchy numbers of median 0.

    Parameters
    ----------
    scale : Tensor or number
        The Cauchy numbers' scale.
    validate_args : bool or None
    """

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    scale = of_base("scale", "The Cauchy numbers' scale.")

    def __init__(self, scale: Any, validate_args: bool | None = None):
        super().__init__(Cauchy(0, scale, validate_args=False), AbsTransform(), validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, self._get_checked_instance(HalfCauchy, _instance))

    @property
    def mean(self) -> Tensor:
        return full_like(self.scale, math.inf)

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def log_prob(self, value: Any) -> Tensor:
        self._check_value(value)
        value = as_tensor(value, dtype=self.scale.dtype)
        return where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Tensor) -> Tensor:
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)
