"""MixtureSameFamily: mixtures of distributions of one kind."""

from __future__ import annotations

from typing import Any

from convcore._size import Size
from convcore._tensor import Tensor
from convcore.autograd.grad_mode import no_grad
from convcore.distributions import constraints
from convcore.distributions.categorical import Categorical
from convcore.distributions.distribution import Distribution
from convcore.functions.softmax import log_softmax

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A mixture: the last batch axis of the components is what is mixed.

    Parameters
    ----------
    mixture_distribution : Categorical (..., K)
        The weights.
    component_distribution : Distribution of batch shape (..., K)
    validate_args : bool or None
    """

    arg_constraints: Any = {}
    has_rsample = False

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ):
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                " The Mixture distribution needs to be an  instance of "
                "torch.distributions.Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution need to be an instance of "
                "torch.distributions.Distribution"
            )
        mixed = mixture_distribution._num_events
        batch = component_distribution.batch_shape
        if batch[-1] != mixed:
            raise ValueError(
                f"`mixture_distribution component` ({mixed}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({batch[-1]})"
            )
        self.mixture_distribution = mixture_distribution
        self.component_distribution = component_distribution
        super().__init__(batch[:-1], component_distribution.event_shape, validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        batch_shape = Size(batch_shape)
        components = self.component_distribution
        new.component_distribution = components.expand(batch_shape + components.batch_shape[-1:])
        new.mixture_distribution = self.mixture_distribution.expand(batch_shape)
        return super().expand(batch_shape, new)

    @property
    def support(self) -> Any:
        return constraints.of_mixture(self.component_distribution.support)

    def _weighted(self, values: Tensor) -> Tensor:
        """Return the sum over components, weighted with their probabilities."""
        probs = self.mixture_distribution.probs
        probs = probs.reshape((*probs.shape, *(1 for _ in self.event_shape)))
        return (probs * values).sum(-1 - len(self.event_shape))

    @property
    def mean(self) -> Tensor:
        return self._weighted(self.component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        inner = self.component_distribution
        apart = inner.mean - self.mean.unsqueeze(-1 - len(self.event_shape))
        return self._weighted(inner.variance) + self._weighted(apart.pow(2.0))

    def cdf(self, x: Tensor) -> Tensor:
        found = self.component_distribution.cdf(self._padded(x))
        return (found * self.mixture_distribution.probs).sum(-1)

    def log_prob(self, x: Tensor) -> Tensor:
        self._check_value(x)
        inner = self.component_distribution.log_prob(self._padded(x))
        return (inner + log_softmax(self.mixture_distribution.logits, dim=-1)).logsumexp(-1)

    def _padded(self, x: Tensor) -> Tensor:
        return x.unsqueeze(-1 - len(self.event_shape))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            chosen = self.mixture_distribution.sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            axis = len(tuple(sample_shape)) + len(self.batch_shape)
            index = chosen.reshape((*chosen.shape, 1, *(1 for _ in self.event_shape)))
            index = index.expand((*chosen.shape, 1, *self.event_shape))
            return drawn.gather(axis, index).squeeze(axis)

    def __repr__(self) -> str:
        return (
            f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
        )
