"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any

from convcore._tensor import Tensor
from convcore.autograd.grad_mode import no_grad
from convcore.distributions import constraints
from convcore.distributions._probs_or_logits import ProbsOrLogits
from convcore.distributions.gamma import Gamma
from convcore.distributions.utils import broadcast_all, exactly_one
from convcore.functions.activation import logsigmoid
from convcore.functions.elementwise import sigmoid
from convcore.functions.gamma import lgamma
from convcore.random import poisson

__all__ = ["NegativeBinomial"]


class NegativeBinomial(ProbsOrLogits):
    """The negative binomial distribution: the successes before ``total_count`` failures.

    It is drawn as Poisson numbers of gamma distributed rates, so the count may be fractional.

    Parameters
    ----------
    total_count : number or Tensor, not negative
    probs : number or Tensor of [0, 1), or None
        The probability of a success.
    logits : number or Tensor, or None
        Its log-odds, in the place of probs.
    validate_args : bool or None
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    _parameters = ("total_count", "probs", "logits")

    def __init__(
        self,
        total_count: Any,
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

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / sigmoid(-self.logits)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            # Not validated, for the count may be 0.
            rates = Gamma(self.total_count, (-self.logits).exp(), validate_args=False)
            return poisson(rates.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        count, x = self.total_count, self.logits
        ways = lgamma(count + value) - lgamma(1.0 + value) - lgamma(count)
        # No success before no failure is certain, and lgamma(0) infinite.
        ways = ways.masked_fill(count + value == 0.0, 0.0)
        return count * logsigmoid(-x) + value * logsigmoid(x) + ways
