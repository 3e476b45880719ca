"""The logistic-normal distribution."""

from __future__ import annotations

from typing import Any

from convcore.distributions import constraints
from convcore.distributions.normal import Normal
from convcore.distributions.transformed_distribution import TransformedDistribution, of_base
from convcore.distributions.transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """The logistic-normal distribution: points of the simplex, made of normal vectors.

    Parameters
    ----------
    loc, scale : (..., K - 1) means and standard deviations of the normal numbers; samples have K
    validate_args : bool or None
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    loc = of_base("base_dist.loc", "The means of the normal numbers.")
    scale = of_base("base_dist.scale", "The standard deviations of the normal numbers.")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        base = Normal(loc, scale, validate_args=validate_args)
        base = base if base.batch_shape else base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, self._get_checked_instance(LogisticNormal, _instance))
