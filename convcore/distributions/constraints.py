"""Constraints: the sets that parameters and samples lie in.

A constraint's ``check(value)`` returns a bool for each event: True where the value is inside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from convcore._tensor import Tensor, wrap

__all__ = [
    "Constraint",
    "boolean",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "symmetric",
    "unit_interval",
]


class Constraint:
    """A set of tensors.

    Attributes
    ----------
    is_discrete : bool
        Whether it holds isolated numbers.
    event_dim : int
        The number of last axes that one check looks at together.
    """

    is_discrete = False
    event_dim = 0

    def check(self, value: Tensor) -> Tensor:
        """Return for each event whether it is inside."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__[1:]}()"


class _Dependent(Constraint):
    """What depends on other values, and cannot be checked by itself."""

    def __init__(self, *, is_discrete: bool = False, event_dim: int = 0):
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def check(self, value: Any) -> Any:
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint: Any) -> bool:
    """Return whether a constraint depends on other values."""
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property that returns a constraint; of a class, it is a dependent constraint itself."""

    def __init__(
        self, fn: Callable | None = None, *, is_discrete: bool = False, event_dim: int = 0
    ):
        super().__init__(fn)
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, fn: Callable) -> _DependentProperty:
        return _DependentProperty(fn, is_discrete=self.is_discrete, event_dim=self.event_dim)


class _IndependentConstraint(Constraint):
    """A constraint whose last axes are checked together."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int):
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        result = self.base_constraint.check(value)
        count = self.reinterpreted_batch_ndims
        if result.dim() < count:
            expected = self.base_constraint.event_dim + count
            raise ValueError(f"Expected value.dim() >= {expected} but got {value.dim()}")
        return wrap(np.asarray(result._array.all(tuple(range(result.dim() - count, result.dim())))))

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__[1:]}({self.base_constraint}, {self.reinterpreted_batch_ndims})"
        )


class _Said(Constraint):
    """A set without parameters, said by a condition of arrays."""

    def __init__(self, name: str, inside: Callable, event_dim: int = 0, is_discrete: bool = False):
        self._name, self._inside = name, inside
        self.event_dim, self.is_discrete = event_dim, is_discrete

    def check(self, value: Tensor) -> Tensor:
        return wrap(np.asarray(self._inside(value._array)))

    def __repr__(self) -> str:
        return self._name


def _is_whole(x: np.ndarray) -> np.ndarray:
    return x % 1 == 0


class _Bounded(Constraint):
    """Numbers within bounds, which broadcast."""

    def __init__(self, lower_bound: Any = None, upper_bound: Any = None):
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value: Tensor) -> Tensor:
        low, high = (getattr(b, "_array", b) for b in (self.lower_bound, self.upper_bound))
        return wrap(np.asarray(self._inside(value._array, low, high)))

    def _inside(self, x: np.ndarray, low: Any, high: Any) -> np.ndarray:
        raise NotImplementedError

    def __repr__(self) -> str:
        bounds = {"lower_bound": self.lower_bound, "upper_bound": self.upper_bound}
        shown = [f"{name}={value}" for name, value in bounds.items() if value is not None]
        return f"{type(self).__name__[1:]}({', '.join(shown)})"


class _IntegerInterval(_Bounded):
    is_discrete = True

    def _inside(self, x: np.ndarray, low: Any, high: Any) -> np.ndarray:
        return _is_whole(x) & (low <= x) & (x <= high)


class _IntegerGreaterThan(_Bounded):
    is_discrete = True

    def _inside(self, x: np.ndarray, low: Any, high: Any) -> np.ndarray:
        return _is_whole(x) & (x >= low)


class _GreaterThan(_Bounded):
    def _inside(self, x: np.ndarray, low: Any, high: Any) -> np.ndarray:
        return np.asarray(low < x)


class _GreaterThanEq(_Bounded):
    def _inside(self, x: np.ndarray, low: Any, high: Any) -> np.ndarray:
        return np.asarray(low <= x)


class _LessThan(_Bounded):
    def __init__(self, upper_bound: Any):
        super().__init__(None, upper_bound)

    def _inside(self, x: np.ndarray, low: Any, high: Any) -> np.ndarray:
        return np.asarray(x < high)


class _Interval(_Bounded):
    def _inside(self, x: np.ndarray, low: Any, high: Any) -> np.ndarray:
        return (low <= x) & (x <= high)


class _HalfOpenInterval(_Bounded):
    def _inside(self, x: np.ndarray, low: Any, high: Any) -> np.ndarray:
        return (low <= x) & (x < high)


def _is_simplex(x: np.ndarray) -> np.ndarray:
    return (x >= 0).all(-1) & (np.abs(x.sum(-1) - 1) < 1e-6)


def _is_one_hot(x: np.ndarray) -> np.ndarray:
    return ((x == 0) | (x == 1)).all(-1) & (x.sum(-1) == 1)


def _is_lower(x: np.ndarray) -> np.ndarray:
    return np.asarray((np.tril(x) == x).all((-2, -1)))


def _is_cholesky(x: np.ndarray) -> np.ndarray:
    return _is_lower(x) & (np.diagonal(x, 0, -2, -1) > 0).all(-1)


def _is_square(x: np.ndarray) -> np.ndarray:
    return np.full(x.shape[:-2], x.shape[-1] == x.shape[-2])


def _is_symmetric(x: np.ndarray) -> np.ndarray:
    if x.shape[-1] != x.shape[-2]:
        return _is_square(x)
    return np.isclose(x, np.swapaxes(x, -2, -1), atol=1e-6).all((-2, -1))


def _is_definite(x: np.ndarray, least: Callable) -> np.ndarray:
    symmetric = _is_symmetric(x)
    if not symmetric.all():
        return symmetric
    return np.asarray(least(np.linalg.eigvalsh(x)).all(-1))


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Said("Boolean()", lambda x: (x == 0) | (x == 1), is_discrete=True)
one_hot = _Said("OneHot()", _is_one_hot, 1, is_discrete=True)
integer_interval = _IntegerInterval
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
real = _Said("Real()", lambda x: ~np.isnan(x))
real_vector = independent(real, 1)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
interval = _Interval
half_open_interval = _HalfOpenInterval
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
unit_interval = _Interval(0.0, 1.0)
simplex = _Said("Simplex()", _is_simplex, 1)
lower_triangular = _Said("LowerTriangular()", _is_lower, 2)
lower_cholesky = _Said("LowerCholesky()", _is_cholesky, 2)
square = _Said("Square()", _is_square, 2)
symmetric = _Said("Symmetric()", _is_symmetric, 2)
positive_semidefinite = _Said(
    "PositiveSemidefinite()", lambda x: _is_definite(x, lambda values: values >= 0), 2
)
positive_definite = _Said(
    "PositiveDefinite()", lambda x: _is_definite(x, lambda values: values > 0), 2
)
