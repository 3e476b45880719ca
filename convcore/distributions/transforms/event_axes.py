"""The last axes of tensors, which belong to an event."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from convcore.distributions import constraints
from convcore.distributions.constraints import Constraint


def event_axes(path: Iterable[tuple[Constraint, Constraint]]) -> int:
    """Return how many last axes an event takes after a path of steps (from, to)."""
    axes = 0
    for before, after in path:
        axes = max(axes - before.event_dim, 0) + after.event_dim
    return axes


def widened(constraint: Any, event_dim: int) -> Any:
    """Return a constraint of events with so many axes."""
    more = event_dim - constraint.event_dim
    return constraints.independent(constraint, more) if more > 0 else constraint
