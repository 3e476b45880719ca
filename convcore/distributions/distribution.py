"""Distribution: shapes, checks of parameters and samples, expansion."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from convcore._tensor import Tensor
from convcore._tensor.size import Size
from convcore.autograd.grad_mode import no_grad
from convcore.distributions import constraints
from convcore.distributions.utils import lazy_property

__all__ = ["Distribution"]


class Distribution:
    """The base of distributions.

    Parameters
    ----------
    batch_shape : Size
        Shape of the parameters: so many distributions, of the same kind, at once.
    event_shape : Size
        Shape of one sample of one of them.
    validate_args : bool or None
        Whether parameters and samples are checked; None is the class' default, on.

    Notes
    -----
    ``_parameters`` names the parameters whose shape is batch_shape: `expand` expands them.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__
    _parameters: tuple[str, ...] = ()

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Switch the checks of distributions made from now on."""
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def __init__(
        self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None
    ):
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    def _check_parameters(self) -> None:
        try:
            given = self.arg_constraints
        except NotImplementedError:
            given = {}
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set "
                "`arg_constraints = {}` or initialize the distribution with "
                "`validate_args=False` to turn off validation.",
                stacklevel=4,
            )
        for name, constraint in given.items():
            is_lazy = isinstance(getattr(type(self), name, None), lazy_property)
            if constraints.is_dependent(constraint) or (is_lazy and name not in self.__dict__):
                continue
            value = getattr(self, name)
            if not constraint.check(value).all():
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape "
                    f"{tuple(value.shape)}) of distribution {self!r} to satisfy the constraint "
                    f"{constraint!r}, but found invalid values:\n{value}"
                )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """Return the distribution with its parameters expanded to ``batch_shape``; no copy."""
        new = self._get_checked_instance(type(self), _instance)
        batch_shape = Size(batch_shape)
        for name in self._parameters:
            if name in self.__dict__:
                setattr(new, name, self._expanded(name, batch_shape))
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _expanded(self, name: str, batch_shape: Size) -> Tensor:
        value = getattr(self, name)
        return value.expand((*batch_shape, *value.shape[len(self._batch_shape) :]))

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """Return what `expand` fills: ``_instance``, or a new one of a class that adds nothing."""
        if _instance is not None:
            return _instance
        if type(self).__init__ is not cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ "
                "method must also define a custom .expand() method."
            )
        return object.__new__(type(self))

    @property
    def batch_shape(self) -> Size:
        """Shape of the parameters."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """Shape of one sample of one distribution."""
        return self._event_shape

    @property
    def arg_constraints(self) -> dict[str, Any]:
        """The constraint of each parameter."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """The constraint of samples."""
        raise NotImplementedError

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """The most likely value."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw samples, (*sample_shape, *batch_shape, *event_shape), without gradients."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw samples that are differentiable functions of the parameters."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Tensor:
        """Draw n samples; an older `sample`."""
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density, or of the probability, at ``value``."""
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """Return the distribution function at ``value``."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """Return the quantile of ``value``, the inverse of `cdf`."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return all values of a discrete distribution along a new first axis."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """Return the entropy, in nats."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """Return the exponential of the entropy."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _values(self, values: Tensor, expand: bool) -> Tensor:
        """Return the values of `enumerate_support`, given them with one axis."""
        values = values.reshape((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values

    def _check_value(self, value: Tensor) -> None:
        """Validate a sample if this distribution checks any."""
        if self._validate_args:
            self._validate_sample(value)

    def _validate_sample(self, value: Tensor) -> None:
        """Raise ValueError unless ``value`` has the shape of samples, and is in the support."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        event = len(self._event_shape)
        if value.shape[value.dim() - event :] != self._event_shape:
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.size()} vs "
                f"{self._event_shape}."
            )
        expected = self._batch_shape + self._event_shape
        try:
            np.broadcast_shapes(value.shape, expected)
        except ValueError:
            raise ValueError(
                "Value is not broadcastable with batch_shape+event_shape: "
                f"{value.size()} vs {Size(expected)}."
            ) from None
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. Please "
                "initialize the distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        if not support.check(value).all():
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) "
                f"to be within the support ({support!r}) of the distribution {self!r}, but found "
                f"invalid values:\n{value}"
            )

    def __repr__(self) -> str:
        names = [name for name in self.arg_constraints if name in self.__dict__]
        shown = []
        for name in names:
            value = self.__dict__[name]
            shown.append(f"{name}: {value if value.numel() == 1 else value.size()}")
        return f"{type(self).__name__}({', '.join(shown)})"
