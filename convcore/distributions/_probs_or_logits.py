"""What distributions share that are given by probabilities or by logits."""

from __future__ import annotations

from typing import Any

from convcore._tensor import Tensor
from convcore._tensor.size import Size
from convcore.distributions.distribution import Distribution
from convcore.distributions.utils import (
    broadcast_all,
    exactly_one,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)


class ProbsOrLogits(Distribution):
    """A distribution given by ``probs`` or ``logits``; the other is computed once, when asked for.

    Notes
    -----
    ``_is_binary`` says what logits are: log-odds, or log-probabilities along the last axis.
    """

    _parameters: tuple[str, ...] = ("probs", "logits")
    _is_binary = True

    def _take(self, probs: Any, logits: Any) -> None:
        if exactly_one(probs, logits):
            (self.probs,) = broadcast_all(probs)
        else:
            (self.logits,) = broadcast_all(logits)

    @property
    def _param(self) -> Tensor:
        return self.__dict__["probs" if "probs" in self.__dict__ else "logits"]

    @lazy_property
    def logits(self) -> Tensor:
        """Return the log-odds, or the log-probabilities."""
        return probs_to_logits(self.probs, self._is_binary)

    @lazy_property
    def probs(self) -> Tensor:
        """Return the probabilities."""
        return logits_to_probs(self.logits, self._is_binary)

    @property
    def param_shape(self) -> Size:
        """The shape of the probabilities."""
        return self._param.size()
