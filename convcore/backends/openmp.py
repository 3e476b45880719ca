"""OpenMP, on which the kernels run in parallel."""

from convcore.engine.runtime import threads

__all__ = ["is_available"]


def is_available() -> bool:
    """Return whether the kernels were built with OpenMP."""
    return threads.openmp() > 0
