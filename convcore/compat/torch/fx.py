"""Marks that PyTorch's tracer reads; nothing traces Python code here."""

from __future__ import annotations

from typing import Any


def wrap(function: Any) -> Any:
    """Return a function, or the name of one, as it is."""
    return function
