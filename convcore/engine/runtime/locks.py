"""Locks that a fork takes first, so that they are free in the child; see `convcore._forks`."""

from __future__ import annotations

import os

# Its handlers of forks are registered before those below: locks are taken before regions are kept
# from beginning, for who holds a lock may begin one.
import convcore.engine.runtime.threads  # noqa: F401
from convcore import _forks
from convcore._forks import free_in_child as free_in_child
from convcore._forks import process_lock as process_lock

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_forks.take_locks,
        after_in_parent=_forks.release_locks,
        after_in_child=_forks.free_locks,
    )
