"""The Gumbel distribution."""

from __future__ import annotations

import math
from typing import Any

from convcore._creation import full_like, ones_like
from convcore._tensor import Tensor
from convcore.distributions import constraints
from convcore.distributions.transformed_distribution import TransformedDistribution
from convcore.distributions.transforms import AffineTransform, ExpTransform
from convcore.distributions.uniform import Uniform
from convcore.distributions.utils import broadcast_all, finfo

__all__ = ["Gumbel"]

_EULER = 0.57721566490153286060


class Gumbel(TransformedDistribution):
    """The Gumbel distribution: loc - scale log(-log u) of uniform numbers u.

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
        limits = finfo(self.loc)
        low, high = (full_like(self.loc, one) for one in (limits.tiny, 1 - limits.eps))
        base = Uniform(low, high, validate_args=validate_args)
        turn = AffineTransform(loc=0, scale=-ones_like(self.scale))
        log = ExpTransform().inv
        steps = [log, turn, log, AffineTransform(loc=self.loc, scale=-self.scale)]
        super().__init__(base, steps, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, self._get_checked_instance(Gumbel, _instance))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * _EULER

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.pow(2)

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + _EULER)
