"""The multinomial distribution."""

from __future__ import annotations

from typing import Any

from convcore._creation import ones, zeros
from convcore._size import Size
from convcore._tensor import Tensor
from convcore.distributions import constraints
from convcore.distributions.binomial import Binomial
from convcore.distributions.categorical import OverCategories
from convcore.functions.gamma import lgamma

__all__ = ["Multinomial"]


class Multinomial(OverCategories):
    """The multinomial distribution: counts of K categories in ``total_count`` trials.

    Parameters
    ----------
    total_count : int
    probs, logits : as of Categorical
    validate_args : bool or None
    """

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        super().__init__(probs, logits, validate_args)
        self._binomial = Binomial(total_count, probs=self.probs)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, self._get_checked_instance(Multinomial, _instance))
        new.total_count = self.total_count
        new._binomial = Binomial(self.total_count, probs=new.probs)
        return new

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = Size(sample_shape)
        drawn = self._categorical.sample((self.total_count, *shape))
        drawn = drawn.movedim(0, -1)
        counts = zeros(self._extended_shape(shape), dtype=self.probs.dtype)
        return counts.scatter_add(-1, drawn, ones(drawn.shape, dtype=counts.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        choices = lgamma(value.sum(-1) + 1) - lgamma(value + 1).sum(-1)
        weight = (value * self.logits).nan_to_num(nan=0.0, neginf=float("-inf"))
        return choices + weight.sum(-1)

    def entropy(self) -> Tensor:
        n = ones((), dtype=self.probs.dtype) * self.total_count
        support = self._binomial.enumerate_support(expand=False)[1:]
        weights = self._binomial.log_prob(support).exp()
        weight = (weights * lgamma(support + 1)).sum((0, -1))
        return n * self._categorical.entropy() - lgamma(n + 1) + weight
