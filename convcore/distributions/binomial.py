"""The binomial distribution."""

from __future__ import annotations

from typing import Any

from convcore._creation import arange
from convcore._tensor import Tensor
from convcore.autograd.grad_mode import no_grad
from convcore.distributions import constraints
from convcore.distributions._probs_or_logits import ProbsOrLogits
from convcore.distributions.utils import broadcast_all, exactly_one
from convcore.functions.gamma import lgamma
from convcore.random import binomial

__all__ = ["Binomial"]


class Binomial(ProbsOrLogits):
    """The binomial distribution: the number of successes in ``total_count`` trials.

    Parameters
    ----------
    total_count : int or Tensor
    probs : number or Tensor, or None
    logits : number or Tensor, or None
        The log-odds, in the place of probs.
    validate_args : bool or None
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True
    _parameters = ("total_count", "probs", "logits")

    def __init__(
        self,
        total_count: Any = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ):
        if exactly_one(probs, logits):
            count, self.probs = broadcast_all(total_count, probs)
        else:
            count, self.logits = broadcast_all(total_count, logits)
        self.total_count = count.to(self._param.dtype)
        super().__init__(self._param.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        likely = ((self.total_count + 1) * self.probs).floor()
        return likely.minimum(self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        n, x = self.total_count, self.logits
        choices = lgamma(n + 1) - lgamma(value + 1) - lgamma(n - value + 1)
        softplus = x.clamp(min=0) + (-x.abs()).exp().log1p()
        return choices + value * x - n * softplus

    def entropy(self) -> Tensor:
        n = int(self.total_count.max())
        if not (self.total_count == n).all():
            raise NotImplementedError("Inhomogeneous total count not supported by `entropy`.")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = int(self.total_count.max())
        if not (self.total_count == n).all():
            raise NotImplementedError(
                "Inhomogeneous total count not supported by `enumerate_support`."
            )
        return self._values(arange(n + 1, dtype=self.total_count.dtype), expand)
