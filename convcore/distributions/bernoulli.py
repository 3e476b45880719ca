"""The Bernoulli distribution."""

from __future__ import annotations

from typing import Any

from convcore._tensor import Tensor
from convcore._tensor.creation import arange
from convcore.autograd.grad_mode import no_grad
from convcore.distributions import constraints
from convcore.distributions._probs_or_logits import ProbsOrLogits
from convcore.distributions.exp_family import ExponentialFamily
from convcore.distributions.utils import broadcast_all
from convcore.functions.elementwise.piecewise import where
from convcore.functions.losses.loss import binary_cross_entropy_with_logits
from convcore.random import bernoulli

__all__ = ["Bernoulli"]


class Bernoulli(ProbsOrLogits, ExponentialFamily):
    """The Bernoulli distribution: 1 with probability ``probs``, else 0.

    Parameters
    ----------
    probs : number or Tensor, or None
    logits : number or Tensor, or None
        The log-odds log(p / (1 - p)), in the place of probs.
    validate_args : bool or None
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        self._take(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        likely = (self.probs >= 0.5).to(self.probs.dtype)
        return where(self.probs == 0.5, float("nan"), likely)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return bernoulli(self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._values(arange(2, dtype=self._param.dtype), expand)
