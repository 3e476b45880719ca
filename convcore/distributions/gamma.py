"""The gamma distribution."""

from __future__ import annotations

from typing import Any

from convcore._tensor import Tensor
from convcore.distributions import constraints
from convcore.distributions.exp_family import ExponentialFamily
from convcore.distributions.utils import broadcast_all, finfo
from convcore.functions.drawing.gamma_variates import standard_gamma
from convcore.functions.elementwise.gamma import digamma, lgamma
from convcore.functions.elementwise.special import xlogy

__all__ = ["Gamma"]


class Gamma(ExponentialFamily):
    """The gamma distribution of shape ``concentration`` and scale 1 / ``rate``.

    Parameters
    ----------
    concentration, rate : Tensors or numbers that broadcast
    validate_args : bool or None

    Notes
    -----
    Samples are differentiable in both parameters; see `standard_gamma`.
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _parameters = ("concentration", "rate")

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None):
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        drawn = standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        drawn.detach().clamp_(min=float(finfo(drawn).tiny))
        return drawn

    def log_prob(self, value: Tensor) -> Tensor:
        (value,) = broadcast_all(value) if not isinstance(value, Tensor) else (value,)
        self._check_value(value)
        a, b = self.concentration, self.rate
        return xlogy(a, b) + xlogy(a - 1, value) - b * value - lgamma(a)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + lgamma(a) + (1.0 - a) * digamma(a)
