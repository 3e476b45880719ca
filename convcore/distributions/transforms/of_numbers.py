"""Transforms of numbers, one by one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore._tensor.size import Size
from convcore.distributions import constraints
from convcore.distributions.transforms.event_axes import widened
from convcore.distributions.transforms.transform import Transform
from convcore.distributions.utils import sum_rightmost
from convcore.functions.elementwise.activation import softplus
from convcore.functions.elementwise.elementwise import sigmoid
from convcore.functions.shapes.broadcast import broadcast_shape


class _Rising(Transform):
    """An invertible transform of numbers that rises, without parameters."""

    domain: Any = constraints.real
    codomain: Any = constraints.real
    bijective = True
    sign: Any = 1

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    __hash__ = object.__hash__


class ExpTransform(_Rising):
    """y = exp(x)."""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class SigmoidTransform(_Rising):
    """y = 1 / (1 + exp(-x))."""

    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        limits = np.finfo(x._array.dtype)
        return sigmoid(x).clamp(min=float(limits.tiny), max=1.0 - float(limits.eps))

    def _inverse(self, y: Tensor) -> Tensor:
        limits = np.finfo(y._array.dtype)
        y = y.clamp(min=float(limits.tiny), max=1.0 - float(limits.eps))
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x) - softplus(x)


class TanhTransform(_Rising):
    """y = tanh(x); with a cache the inverse of a result at the edges is exact."""

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return 0.5 * (y.log1p() - (-y).log1p())

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class AbsTransform(Transform):
    """y = |x|, whose inverse is taken to be y."""

    domain = constraints.real
    codomain = constraints.positive

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbsTransform)

    __hash__ = object.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """y = loc + scale x.

    Parameters
    ----------
    loc, scale : Tensors or numbers
    event_dim : 0, 1 or 2
        The number of last axes that are one event.
    cache_size : 0 or 1
    """

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0):
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @property
    def domain(self) -> Any:
        """What x may be."""
        return widened(constraints.real, self._event_dim)

    codomain = domain

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AffineTransform):
            return False
        pairs = ((self.loc, other.loc), (self.scale, other.scale))
        return all(np.array_equal(_plain(a), _plain(b)) for a, b in pairs)

    __hash__ = object.__hash__

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, Tensor):
            return self.scale.sign()
        return 1 if self.scale > 0 else -1 if self.scale < 0 else 0

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        scale: Any = self.scale
        if isinstance(scale, Tensor):
            slope = scale.abs().log().expand(broadcast_shape(scale.shape, x.shape))
        else:
            slope = wrap(np.full(x.shape, math.log(abs(scale)), x._array.dtype))
        return sum_rightmost(slope, self._event_dim)

    def forward_shape(self, shape: Any) -> Any:
        shapes = (getattr(one, "shape", ()) for one in (self.loc, self.scale))
        return Size(broadcast_shape(tuple(shape), *shapes))

    inverse_shape = forward_shape


def _plain(value: Any) -> Any:
    return value._array if isinstance(value, Tensor) else value
