"""RelaxedOneHotCategorical: one-hot vectors softened by a temperature."""

from __future__ import annotations

import math
from typing import Any

from convcore._tensor import Tensor
from convcore.distributions import constraints
from convcore.distributions.categorical import OverCategories
from convcore.distributions.transformed_distribution import TransformedDistribution, of_base
from convcore.distributions.transforms import ExpTransform
from convcore.distributions.utils import broadcast_all, clamp_probs
from convcore.random import rand

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(OverCategories):
    """The logarithms of RelaxedOneHotCategorical's samples.

    References
    ----------
    C. J. Maddison, A. Mnih and Y. W. Teh, "The concrete distribution", arXiv:1611.00712, 2017.
    """

    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        self.temperature = temperature
        super().__init__(probs, logits, validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(ExpRelaxedCategorical, _instance)
        new.temperature = self.temperature
        return super().expand(batch_shape, new)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        drawn = clamp_probs(rand(shape, dtype=self.logits.dtype))
        gumbels = -((-(drawn.log())).log())
        scores = (self.logits + gumbels) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        k = self.event_shape[0]
        logits, value = broadcast_all(self.logits, value)
        (temperature,) = broadcast_all(self.temperature)
        scale = temperature.log() * (k - 1) + math.lgamma(k)
        score = logits - value * temperature
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + scale


class RelaxedOneHotCategorical(TransformedDistribution):
    """The relaxed one-hot distribution on the simplex; samples are differentiable.

    The lower the temperature, the nearer samples are to the corners.

    Parameters
    ----------
    temperature : Tensor or number
    probs, logits : as of Categorical
    validate_args : bool or None
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True

    temperature = of_base("temperature", "The temperature.")
    logits = of_base("logits", "The log-probabilities.")
    probs = of_base("probs", "The probabilities.")

    def __init__(
        self,
        temperature: Any,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(RelaxedOneHotCategorical, _instance)
        return super().expand(batch_shape, new)
