"""The Poisson distribution."""

from __future__ import annotations

from typing import Any

from convcore._tensor import Tensor
from convcore.autograd.grad_mode import no_grad
from convcore.distributions import constraints
from convcore.distributions.exp_family import ExponentialFamily
from convcore.distributions.utils import broadcast_all
from convcore.functions.elementwise.gamma import lgamma
from convcore.functions.elementwise.special import xlogy
from convcore.random import poisson

__all__ = ["Poisson"]


class Poisson(ExponentialFamily):
    """The Poisson distribution of mean ``rate``.

    Parameters
    ----------
    rate : Tensor or number, not negative
    validate_args : bool or None
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    _parameters = ("rate",)

    def __init__(self, rate: Any, validate_args: bool | None = None):
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    @property
    def variance(self) -> Tensor:
        return self.rate

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return poisson(self.rate.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        rate, value = broadcast_all(self.rate, value)
        return xlogy(value, rate) - rate - lgamma(value + 1)
