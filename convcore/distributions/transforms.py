"""Transforms: invertible maps with the logarithm of their Jacobian determinant."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from convcore._creation import tensor, zeros_like
from convcore._size import Size
from convcore._tensor import Tensor, wrap
from convcore.distributions import constraints
from convcore.distributions.constraints import Constraint
from convcore.distributions.utils import sum_rightmost
from convcore.functions.activation import softplus
from convcore.functions.broadcast import broadcast_shape
from convcore.functions.elementwise import sigmoid
from convcore.functions.joining import cat
from convcore.functions.softmax import softmax

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "ComposeTransform",
    "ExpTransform",
    "IndependentTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]


class Transform:
    """The base of transforms y = f(x).

    Parameters
    ----------
    cache_size : 0 or 1
        With 1 the last x and y are kept, so that the inverse of a result is exact and free.

    Notes
    -----
    A subclass has ``_call(x)``, ``_inverse(y)`` and ``log_abs_det_jacobian(x, y)``.
    """

    bijective = False
    domain: Any
    codomain: Any

    def __init__(self, cache_size: int = 0):
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._cached_x_y: tuple = (None, None)
        self._inv: Transform | None = None

    @property
    def event_dim(self) -> int:
        """The number of last axes that are transformed together."""
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Transform:
        """The inverse transform."""
        if self._inv is None:
            self._inv = _InverseTransform(self)
        return self._inv

    @property
    def sign(self) -> Any:
        """1 where the transform rises, -1 where it falls."""
        raise NotImplementedError

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return the same transform with another size of its cache."""
        if self._cache_size == cache_size:
            return self
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __call__(self, x: Tensor) -> Tensor:
        if self._cache_size == 0:
            return self._call(x)
        if x is not self._cached_x_y[0]:
            self._cached_x_y = x, self._call(x)
        return self._cached_x_y[1]

    def _inv_call(self, y: Tensor) -> Tensor:
        if self._cache_size == 0:
            return self._inverse(y)
        if y is not self._cached_x_y[1]:
            self._cached_x_y = self._inverse(y), y
        return self._cached_x_y[0]

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return log |dy/dx|."""
        raise NotImplementedError

    def forward_shape(self, shape: Any) -> Any:
        """Return the shape of y for a shape of x."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """Return the shape of x for a shape of y."""
        return shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _InverseTransform(Transform):
    """The inverse of a transform, which it calls."""

    def __init__(self, transform: Transform):
        super().__init__(transform._cache_size)
        self._inv = transform

    @property
    def _forward(self) -> Transform:
        assert self._inv is not None
        return self._inv

    @property
    def domain(self) -> Constraint:
        """What x may be."""
        return self._forward.codomain

    @property
    def codomain(self) -> Constraint:
        """What y may be."""
        return self._forward.domain

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        """Whether the inverse is exact."""
        return self._forward.bijective

    @property
    def sign(self) -> Any:
        return self._forward.sign

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self._forward.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    __hash__ = object.__hash__

    def __call__(self, x: Tensor) -> Tensor:
        return self._forward._inv_call(x)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._forward.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        return self._forward.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._forward.forward_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inv!r})"


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
        axes = _event_axes((part.codomain, part.domain) for part in reversed(self.parts))
        return _widened(self.parts[0].domain, axes)

    @property
    def codomain(self) -> Any:
        """What y may be."""
        if not self.parts:
            return constraints.real
        axes = _event_axes((part.domain, part.codomain) for part in self.parts)
        return _widened(self.parts[-1].codomain, axes)

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


def _event_axes(path: Iterable[tuple[Constraint, Constraint]]) -> int:
    """Return how many last axes an event takes after a path of steps (from, to)."""
    axes = 0
    for before, after in path:
        axes = max(axes - before.event_dim, 0) + after.event_dim
    return axes


def _widened(constraint: Any, event_dim: int) -> Any:
    more = event_dim - constraint.event_dim
    return constraints.independent(constraint, more) if more > 0 else constraint


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform, some of whose last batch axes belong to the event.

    Parameters
    ----------
    base_transform : Transform
    reinterpreted_batch_ndims : int
        How many axes more belong to an event; the logarithms of the slopes are summed over them.
    cache_size : 0 or 1
    """

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ):
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def domain(self) -> Any:
        """What x may be."""
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @property
    def codomain(self) -> Any:
        """What y may be."""
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        """Whether the inverse is exact."""
        return self.base_transform.bijective

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        _check_rank(x.shape, self.domain.event_dim)
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        _check_rank(y.shape, self.codomain.event_dim)
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        slope = self.base_transform.log_abs_det_jacobian(x, y)
        return sum_rightmost(slope, self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Any) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


def _check_rank(shape: Any, least: int) -> None:
    if len(shape) < least:
        raise ValueError(
            f"Too few dimensions on input: expected {least} at least, got {len(shape)}"
        )


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

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size)

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
    _check_rank(shape, len(before))
    cut = len(shape) - len(before)
    if tuple(shape[cut:]) != tuple(before):
        raise ValueError(f"Shape mismatch: expected {tuple(before)} but got {tuple(shape[cut:])}")
    return Size((*shape[:cut], *after))


# Transforms of single numbers


class _Rising(Transform):
    """An invertible transform of numbers that rises, without parameters."""

    domain: Any = constraints.real
    codomain: Any = constraints.real
    bijective = True
    sign: Any = 1

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    __hash__ = object.__hash__

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else type(self)(cache_size=cache_size)


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


class SoftplusTransform(_Rising):
    """y = log(1 + exp(x)), above 20 the identity."""

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x)


class PowerTransform(Transform):
    """y = x ** exponent, of positive numbers.

    Parameters
    ----------
    exponent : Tensor or number
    cache_size : 0 or 1
    """

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Any, cache_size: int = 0):
        super().__init__(cache_size)
        self.exponent = exponent if isinstance(exponent, Tensor) else tensor(float(exponent))

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return PowerTransform(self.exponent, cache_size)

    @property
    def sign(self) -> Any:
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PowerTransform):
            return False
        return bool(np.all(self.exponent._array == other.exponent._array))

    __hash__ = object.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Any:
        return Size(broadcast_shape(tuple(shape), self.exponent.shape))

    inverse_shape = forward_shape


# Transforms of vectors


class SoftmaxTransform(Transform):
    """y = exp(x) / sum(exp(x)), whose inverse is taken to be log(y); it has no Jacobian."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SoftmaxTransform)

    __hash__ = object.__hash__

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else SoftmaxTransform(cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return softmax(x, -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        """Return the shape of y for a shape of x."""
        _check_rank(shape, 1)
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
        return _widened(constraints.real, self._event_dim)

    codomain = domain

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self._event_dim, cache_size)

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
