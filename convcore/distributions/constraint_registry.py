"""Transforms from all numbers to what a constraint allows: biject_to and transform_to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from convcore.distributions import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """A table from kinds of constraints to functions that make a transform for one."""

    def __init__(self) -> None:
        self._registry: dict[Any, Callable] = {}

    def register(self, constraint: Any, factory: Callable | None = None) -> Any:
        """Make ``factory(constraint)`` the transform of a kind of constraint; or decorate it so."""
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        self._registry[_kind(constraint)] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        """Return the transform whose values satisfy the constraint."""
        factory = self._registry.get(_kind(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


def _kind(constraint: Any) -> Any:
    """Return a class, or what stands for a set that has no class of its own."""
    if isinstance(constraint, constraints._Elementwise | constraints._Vectors):
        return repr(constraint)
    return constraint if isinstance(constraint, type) else type(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _of_interval(constraint: Any) -> Any:
    low, high = constraint.lower_bound, constraint.upper_bound
    if (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform(
        [transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)]
    )


def _above(constraint: Any) -> Any:
    low = constraint.lower_bound
    if not isinstance(low, transforms.Tensor) and low == 0:
        return transforms.ExpTransform()
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(low, 1)]
    )


def _below(constraint: Any) -> Any:
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)]
    )


for _registry in (biject_to, transform_to):
    _registry.register(constraints.real, lambda constraint: transforms.identity_transform)
    _registry.register(constraints.greater_than, _above)
    _registry.register(constraints.greater_than_eq, _above)
    _registry.register(constraints.less_than, _below)
    _registry.register(constraints.interval, _of_interval)
    _registry.register(constraints.half_open_interval, _of_interval)
    _registry.register(
        constraints.lower_cholesky, lambda constraint: transforms.LowerCholeskyTransform()
    )

biject_to.register(constraints.simplex, lambda constraint: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda constraint: transforms.SoftmaxTransform())


@biject_to.register(constraints.independent)
def _biject_independent(constraint: Any) -> Any:
    base = biject_to(constraint.base_constraint)
    return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)


@transform_to.register(constraints.independent)
def _transform_independent(constraint: Any) -> Any:
    base = transform_to(constraint.base_constraint)
    return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)
