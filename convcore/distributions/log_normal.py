"""The log-normal distribution."""

from __future__ import annotations

from typing import Any

from convcore._tensor import Tensor
from convcore.distributions import constraints
from convcore.distributions.normal import Normal
from convcore.distributions.transformed_distribution import TransformedDistribution, of_base
from convcore.distributions.transforms import ExpTransform

__all__ = ["LogNormal"]


class LogNormal(TransformedDistribution):
    """The log-normal distribution: exponentials of normal numbers.

    Parameters
    ----------
    loc, scale : mean and standard deviation of the logarithm
    validate_args : bool or None
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    loc = of_base("loc", "The logarithm's mean.")
    scale = of_base("scale", "The logarithm's standard deviation.")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, self._get_checked_instance(LogNormal, _instance))

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale.pow(2) / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Tensor:
        square = self.scale.pow(2)
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc
