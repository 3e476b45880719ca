"""What tensors ask about autograd, which is above them: whether operations are recorded."""

from __future__ import annotations

from typing import Any


class _Always:
    enabled = True
    inference = False


# The state of autograd in this thread: autograd/grad_mode.py sets it.
mode: Any = _Always()

# Threads inside `inference_mode`.  It is nearly always empty, and then `wrap` need not ask further.
inferring: set[int] = set()


class Unversioned(list):
    """The version counter of an inference tensor: its changes are not followed."""
