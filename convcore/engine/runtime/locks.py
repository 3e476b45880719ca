"""Locks that are free in a forked child."""

from __future__ import annotations

import os
import threading
from typing import Any


def process_lock() -> Any:
    """Return a reentrant lock that is free in a forked child, whoever held it at the fork.

    A thread that held it then is not in the child, and would never let go of it there.
    """
    lock: Any = threading.RLock()
    if hasattr(os, "register_at_fork"):
        # As the standard library frees its own: logging, concurrent.futures.
        os.register_at_fork(after_in_child=lock._at_fork_reinit)
    return lock
