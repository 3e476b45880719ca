"""The categorical distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore._tensor.creation import arange
from convcore._tensor.size import Size
from convcore.autograd.grad_mode import no_grad
from convcore.distributions import constraints
from convcore.distributions._probs_or_logits import ProbsOrLogits
from convcore.distributions.utils import exactly_one
from convcore.random import multinomial

__all__ = ["Categorical"]


class Categorical(ProbsOrLogits):
    """The categorical distribution: one of K categories, 0 to K - 1.

    Parameters
    ----------
    probs : Tensor (..., K), or None
        Not negative; they are divided by their sum.
    logits : Tensor (..., K), or None
        Unnormalised log-probabilities, in the place of probs.
    validate_args : bool or None
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _is_binary = False

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        exactly_one(probs, logits)
        if probs is not None:
            _check_axis("probs", probs)
            self.probs = probs / probs.sum(-1, keepdim=True)
        elif logits is not None:
            _check_axis("logits", logits)
            self.logits = logits - logits.logsumexp(-1, keepdim=True)
        super().__init__(self._param.shape[:-1], validate_args=validate_args)

    @property
    def _num_events(self) -> int:
        return self._param.shape[-1]

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        return wrap(np.full(self._extended_shape(), np.nan, self.probs._array.dtype))

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(-1)

    @property
    def variance(self) -> Tensor:
        return self.mean

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = Size(sample_shape)
        rows = self.probs.detach().reshape(-1, self._num_events)
        with no_grad():
            drawn = multinomial(rows, shape.numel(), True).t()
        return drawn.reshape(self._extended_shape(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        index = value.long().unsqueeze(-1)
        shape = np.broadcast_shapes(index.shape[:-1], self.logits.shape[:-1])
        logits = self.logits.expand((*shape, self._num_events))
        return logits.gather(-1, index.expand((*shape, 1))).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=float(np.finfo(self.logits._array.dtype).min))
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._values(arange(self._num_events), expand)


def _check_axis(name: str, value: Any) -> None:
    if value.dim() < 1:
        raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
