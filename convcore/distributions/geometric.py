"""The geometric distribution."""

from __future__ import annotations

from typing import Any

from convcore._creation import empty, zeros_like
from convcore._tensor import Tensor
from convcore.autograd.grad_mode import no_grad
from convcore.distributions import constraints
from convcore.distributions._probs_or_logits import ProbsOrLogits
from convcore.distributions.utils import broadcast_all, finfo
from convcore.functions.loss import binary_cross_entropy_with_logits
from convcore.functions.piecewise import masked

__all__ = ["Geometric"]


class Geometric(ProbsOrLogits):
    """The geometric distribution: the number of failures before the first success.

    Parameters
    ----------
    probs : number or Tensor of (0, 1], or None
    logits : number or Tensor, or None
        The log-odds, in the place of probs.
    validate_args : bool or None
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        self._take(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)
        if self._validate_args and probs is not None and not (self.probs > 0).all():
            bad = self.probs[self.probs <= 0]
            raise ValueError(
                f"Expected parameter probs ({type(self.probs).__name__} of shape "
                f"{tuple(self.probs.shape)}) of distribution {self!r} to be positive but found "
                f"invalid values:\n{bad}"
            )

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            drawn = empty(shape, dtype=self.probs.dtype)
            drawn.uniform_(float(finfo(drawn).tiny), 1)
            return (drawn.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        value, probs = broadcast_all(value, self.probs)
        certain = (probs._array == 1) & (value._array == 0)
        probs = masked(probs, ~certain)
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        cost = binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")
        return cost / self.probs
