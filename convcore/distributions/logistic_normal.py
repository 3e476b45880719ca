"""LogisticNormal."""

from __future__ import annotations

from typing import Any

from convcore._tensor import Tensor
from convcore.distributions import constraints
from convcore.distributions.normal import Normal
from convcore.distributions.transformed_distribution import TransformedDistribution
from convcore.distributions.transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """Positive numbers with the sum 1, one more than the normal numbers that they are made of.

    Parameters
    ----------
    loc, scale : mean and standard deviation of the normal numbers
    validate_args : bool or None
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, self._get_checked_instance(LogisticNormal, _instance))

    @property
    def loc(self) -> Tensor:
        """The normal numbers' mean."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The normal numbers' standard deviation."""
        return self.base_dist.base_dist.scale
