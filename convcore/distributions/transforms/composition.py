"""Transforms made of others: one after another, or over more axes of an event."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any

from convcore._tensor import Tensor
from convcore._tensor.creation import zeros_like
from convcore.distributions import constraints
from convcore.distributions.transforms.event_axes import event_axes, widened
from convcore.distributions.transforms.transform import Transform
from convcore.distributions.utils import sum_rightmost


class ComposeTransform(Transform):
    """Transforms one after another.

    Parameters
    ----------
    parts : list of Transforms, the first applied first
    cache_size : 0 or 1
    """

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0):
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = object.__hash__

    @property
    def domain(self) -> Any:
        """What x may be."""
        if not self.parts:
            return constraints.real
        axes = event_axes((part.codomain, part.domain) for part in reversed(self.parts))
        return widened(self.parts[0].domain, axes)

    @property
    def codomain(self) -> Any:
        """What y may be."""
        if not self.parts:
            return constraints.real
        axes = event_axes((part.domain, part.codomain) for part in self.parts)
        return widened(self.parts[-1].codomain, axes)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        """Whether the inverse is exact."""
        return all(part.bijective for part in self.parts)

    @property
    def sign(self) -> Any:
        sign: Any = 1
        for part in self.parts:
            sign = sign * part.sign
        return sign

    @property
    def inv(self) -> Transform:
        if self._inv is None:
            self._inv = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else ComposeTransform(self.parts, cache_size)

    def __call__(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.parts:
            return zeros_like(x)
        axes, slopes, last = self.domain.event_dim, [], len(self.parts) - 1
        for k, part in enumerate(self.parts):
            after = y if k == last else part(x)
            outer = axes - part.domain.event_dim
            slopes.append(sum_rightmost(part.log_abs_det_jacobian(x, after), outer))
            x, axes = after, outer + part.codomain.event_dim
        return reduce(add, slopes)

    def forward_shape(self, shape: Any) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        return "ComposeTransform(\n    " + ",\n    ".join(map(repr, self.parts)) + "\n)"


identity_transform = ComposeTransform([])
