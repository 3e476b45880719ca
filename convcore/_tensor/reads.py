"""A counter of data-dependent reads: `item`, `bool`, `numpy` and others that reveal elements.

What a program does next may depend on them; inference/plan_cache.py asks.  Static tensors may be
read without being counted: what they hold follows from the model and the shapes of its inputs.
"""

from __future__ import annotations

import threading
from typing import Any


class _Reads(threading.local):
    """One count for each thread."""

    count = 0


reads = _Reads()


def mark_static(tensor: Any) -> None:
    """Say that a tensor's elements are the same for all inputs of one shape."""
    tensor._is_static = True


def is_static(tensor: Any) -> bool:
    """Return whether a tensor is said to be the same for all inputs of one shape."""
    return getattr(tensor, "_is_static", False)
