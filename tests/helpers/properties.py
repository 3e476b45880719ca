"""Hypothesis profiles, the same for all properties: reproducible draws, no limit on time.

A property states its number of examples in the full run. The profile scales it: the quick run
tries a tenth, the nightly run (`pytest --all --hypothesis-profile=nightly`) ten times as many.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

__all__ = ["PROFILES", "examples"]

# max_examples of a property without its own number; over 100, the factor of all the others.
PROFILES = {"quick": 10, "full": 100, "nightly": 1000}

for _name, _count in PROFILES.items():
    settings.register_profile(
        _name,
        max_examples=_count,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
settings.load_profile("full")  # conftest.py loads the profile of the run


def examples(n_examples: int) -> settings:
    """Return the settings of a property that the full run tries `n_examples` times."""
    factor = settings.default.max_examples
    return settings(max_examples=max(1, n_examples * factor // PROFILES["full"]))
