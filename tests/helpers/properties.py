"""Settings of Hypothesis, the same for all properties: reproducible draws, no limit on time."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

__all__ = ["few"]


def few(examples: int) -> settings:
    """Return the settings of a property that is tried so many times."""
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
