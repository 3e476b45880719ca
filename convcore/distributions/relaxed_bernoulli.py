"""RelaxedBernoulli: Bernoulli numbers softened by a temperature."""

from __future__ import annotations

from typing import Any

from convcore._tensor import Tensor
from convcore.distributions import constraints
from convcore.distributions._probs_or_logits import ProbsOrLogits
from convcore.distributions.transformed_distribution import TransformedDistribution, of_base
from convcore.distributions.transforms import SigmoidTransform
from convcore.distributions.utils import broadcast_all, clamp_probs
from convcore.random import rand

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(ProbsOrLogits):
    """The log-odds of RelaxedBernoulli's samples.

    References
    ----------
    C. J. Maddison, A. Mnih and Y. W. Teh, "The concrete distribution", arXiv:1611.00712, 2017;
    E. Jang, S. Gu and B. Poole, "Categorical reparameterization with Gumbel-softmax",
    arXiv:1611.01144, 2017.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ):
        self.temperature = temperature
        self._take(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(LogitRelaxedBernoulli, _instance)
        new.temperature = self.temperature
        return super().expand(batch_shape, new)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        drawn = clamp_probs(rand(shape, dtype=probs.dtype))
        logistic = drawn.log() - (-drawn).log1p() + probs.log() - (-probs).log1p()
        return logistic / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        logits, value = broadcast_all(self.logits, value)
        (temperature, _) = broadcast_all(self.temperature, value)
        distance = logits - value * temperature
        return temperature.log() + distance - 2 * distance.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """The relaxed Bernoulli distribution on (0, 1); samples are differentiable.

    The lower the temperature, the nearer samples are to 0 and 1.

    Parameters
    ----------
    temperature : Tensor or number
    probs, logits : as of Bernoulli
    validate_args : bool or None
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    temperature = of_base("temperature", "The temperature.")
    logits = of_base("logits", "The log-odds.")
    probs = of_base("probs", "The probabilities.")

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ):
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, self._get_checked_instance(RelaxedBernoulli, _instance))
