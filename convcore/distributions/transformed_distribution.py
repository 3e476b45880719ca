"""TransformedDistribution: a distribution of y = f(x)."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from convcore._tensor import Tensor
from convcore._tensor.size import Size
from convcore.autograd.grad_mode import no_grad
from convcore.distributions import constraints
from convcore.distributions.distribution import Distribution
from convcore.distributions.independent import Independent
from convcore.distributions.transforms import ComposeTransform, Transform
from convcore.distributions.utils import sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of transformed samples.

    log p(y) = log p(x) - log |dy/dx|

    Parameters
    ----------
    base_distribution : Distribution
    transforms : Transform, or list of them, the first applied first
    validate_args : bool or None
    """

    arg_constraints: Any = {}

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | list[Transform],
        validate_args: bool | None = None,
    ):
        given = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(given, list) or not all(isinstance(t, Transform) for t in given):
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        self.transforms = given
        whole = ComposeTransform(given)
        shape = base_distribution.batch_shape + base_distribution.event_shape
        least = whole.domain.event_dim
        if len(shape) < least:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {least}, but got "
                f"{shape}."
            )
        event_dim = max(len(base_distribution.event_shape), least)
        expanded = whole.inverse_shape(whole.forward_shape(shape))
        if expanded != shape:
            cut = len(expanded) - len(base_distribution.event_shape)
            base_distribution = base_distribution.expand(expanded[:cut])
        inner = event_dim - len(base_distribution.event_shape)
        if inner > 0:
            base_distribution = Independent(base_distribution, inner)
        self.base_dist: Any = base_distribution
        shape = whole.forward_shape(expanded)
        event_dim += whole.codomain.event_dim - least
        cut = len(shape) - event_dim
        super().__init__(shape[:cut], shape[cut:], validate_args)

    @property
    def _whole(self) -> ComposeTransform:
        return ComposeTransform(self.transforms)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(TransformedDistribution, _instance)
        batch_shape = Size(batch_shape)
        shape = self._whole.inverse_shape(batch_shape + self.event_shape)
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        new.transforms = self.transforms
        return super().expand(batch_shape, new)

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        more = len(self.event_shape) - support.event_dim
        return constraints.independent(support, more) if more > 0 else support

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether samples have gradients."""
        return self.base_dist.has_rsample

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return self._whole(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._whole(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        slopes: Any = 0.0
        y, axes = value, len(self.event_shape)
        for transform in reversed(self.transforms):
            x, outer = transform.inv(y), axes - transform.codomain.event_dim
            slopes = slopes - sum_rightmost(transform.log_abs_det_jacobian(x, y), outer)
            y, axes = x, outer + transform.domain.event_dim
        inner = axes - len(self.base_dist.event_shape)
        return slopes + sum_rightmost(self.base_dist.log_prob(y), inner)

    def _monotonized(self, value: Tensor) -> Tensor:
        """Turn probabilities round where the transforms fall."""
        sign = self._whole.sign
        if isinstance(sign, int) and sign == 1:
            return value
        return sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        value = self._whole.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonized(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._whole(self.base_dist.icdf(self._monotonized(value)))


def of_base(name: str, doc: str) -> Any:
    """Return a property that reads an attribute of the base distribution."""
    return property(attrgetter(f"base_dist.{name}"), doc=doc)
