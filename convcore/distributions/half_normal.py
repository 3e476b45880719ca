"""The half-normal distribution."""

from __future__ import annotations

import math
from typing import Any

from convcore._tensor import Tensor
from convcore.distributions._half import Half
from convcore.distributions.normal import Normal
from convcore.distributions.transformed_distribution import of_base

__all__ = ["HalfNormal"]


class HalfNormal(Half):
    """The half-normal distribution: absolute values of normal numbers of mean 0.

    Parameters
    ----------
    scale : Tensor or number
        The normal numbers' standard deviation.
    validate_args : bool or None
    """

    scale = of_base("scale", "The normal numbers' standard deviation.")

    def __init__(self, scale: Any, validate_args: bool | None = None):
        super().__init__(Normal(0, scale, validate_args=False), validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, self._get_checked_instance(HalfNormal, _instance))

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2) * (1 - 2 / math.pi)
