"""Transforms of vectors and other events as a whole."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from convcore._size import Size
from convcore._tensor import Tensor, wrap
from convcore.distributions import constraints
from convcore.distributions.transforms.event_axes import check_rank
from convcore.distributions.transforms.transform import Transform
from convcore.functions.activation import softplus
from convcore.functions.elementwise import sigmoid
from convcore.functions.joining import cat
from convcore.functions.softmax import softmax


class ReshapeTransform(Transform):
    """Events of one shape as events of another, in order.

    Parameters
    ----------
    in_shape, out_shape : ints
        Of as many elements.
    cache_size : 0 or 1
    """

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0):
        super().__init__(cache_size)
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ValueError(
                "in_shape, out_shape have different numbers of elements: "
                f"{tuple(self.in_shape)} and {tuple(self.out_shape)}"
            )

    @property
    def domain(self) -> Any:
        """What x may be."""
        return constraints.independent(constraints.real, len(self.in_shape))

    @property
    def codomain(self) -> Any:
        """What y may be."""
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        batch = x.shape[: x.dim() - len(self.in_shape)]
        return wrap(np.zeros(batch, x._array.dtype))

    def forward_shape(self, shape: Any) -> Any:
        """Return the shape of y for a shape of x."""
        return _with_event(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        """Return the shape of x for a shape of y."""
        return _with_event(shape, self.out_shape, self.in_shape)


def _with_event(shape: Any, before: Size, after: Size) -> Size:
    """Return a shape with another event's shape at its end."""
    check_rank(shape, len(before))
    cut = len(shape) - len(before)
    if tuple(shape[cut:]) != tuple(before):
        raise ValueError(f"Shape mismatch: expected {tuple(before)} but got {tuple(shape[cut:])}")
    return Size((*shape[:cut], *after))


class SoftmaxTransform(Transform):
    """y = exp(x) / sum(exp(x)), whose inverse is taken to be log(y); it has no Jacobian."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SoftmaxTransform)

    __hash__ = object.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return softmax(x, -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        """Return the shape of y for a shape of x."""
        check_rank(shape, 1)
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(Transform):
    """From vectors of K - 1 numbers to K shares of a stick, broken off one after the other.

    Each share is a sigmoid of x - log(shares left) times what is left; zeros give equal shares.
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    __hash__ = None  # type: ignore[assignment]

    def _call(self, x: Tensor) -> Tensor:
        part = sigmoid(x - _shares_left(x).log())
        last = wrap(np.ones((*x.shape[:-1], 1), x._array.dtype))
        return cat([part, last], -1) * cat([last, (1 - part).cumprod(-1)], -1)

    def _inverse(self, y: Tensor) -> Tensor:
        broken = y[..., :-1]
        left = (1 - broken.cumsum(-1)).clamp(min=float(np.finfo(y._array.dtype).tiny))
        return broken.log() - left.log() + _shares_left(broken).log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        x = x - _shares_left(x).log()
        return (y[..., :-1].log() - softplus(x)).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        """Return the shape of y for a shape of x."""
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Any) -> Any:
        """Return the shape of x for a shape of y."""
        return Size((*shape[:-1], shape[-1] - 1))


def _shares_left(x: Tensor) -> Tensor:
    """Return K - 1, ..., 1."""
    return wrap(np.arange(x._array.shape[-1], 0, -1, dtype=x._array.dtype))
