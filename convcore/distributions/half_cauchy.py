"""The half-Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

from convcore._tensor import Tensor
from convcore._tensor.creation import as_tensor, full_like
from convcore.distributions._half import Half
from convcore.distributions.cauchy import Cauchy
from convcore.distributions.transformed_distribution import of_base

__all__ = ["HalfCauchy"]


class HalfCauchy(Half):
    """The half-Cauchy distribution: absolute values of Cauchy numbers of median 0.

    Parameters
    ----------
    scale : Tensor or number
        The Cauchy numbers' scale.
    validate_args : bool or None
    """

    scale = of_base("scale", "The Cauchy numbers' scale.")

    def __init__(self, scale: Any, validate_args: bool | None = None):
        super().__init__(Cauchy(0, scale, validate_args=False), validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, self._get_checked_instance(HalfCauchy, _instance))

    @property
    def mean(self) -> Tensor:
        return full_like(self.scale, math.inf)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def log_prob(self, value: Any) -> Tensor:
        self._check_value(value)
        return super().log_prob(as_tensor(value, dtype=self.scale.dtype))
