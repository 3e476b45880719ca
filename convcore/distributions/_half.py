"""Absolute values of numbers of a symmetric distribution about 0: half of it, twice as dense."""

from __future__ import annotations

import math
from typing import Any

from convcore._tensor import Tensor
from convcore._tensor.creation import zeros_like
from convcore.distributions import constraints
from convcore.distributions.transformed_distribution import TransformedDistribution
from convcore.distributions.transforms import AbsTransform
from convcore.functions.elementwise.piecewise import where


class Half(TransformedDistribution):
    """What `HalfNormal` and `HalfCauchy` have in common; subclasses have a ``scale``.

    Parameters
    ----------
    base : Distribution
        The symmetric one, about 0.
    validate_args : bool or None
    """

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    scale: Any

    def __init__(self, base: Any, validate_args: bool | None):
        super().__init__(base, AbsTransform(), validate_args)

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.scale)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Tensor) -> Tensor:
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)
