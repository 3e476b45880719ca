"""What holds where a process forks while other threads are anywhere in the library.

`os.fork` copies the thread that calls it, and the memory as it is then.  What another thread was
doing is never finished in the child: a lock that it held would stay locked there, a module that it
imported half loaded.  So the rule is, with the handlers below and those of
`convcore.engine.runtime.threads`:

1.  Before the fork its thread takes every lock of the library, which is a `process_lock`, waits
    for the parallel regions that call BLAS, and waits until no other thread imports a module of
    the library or of those that it stands on.  Parent and child then go on, and let go of the
    locks: the child finds nothing half changed, and draws, computes and imports as its parent.
2.  A fork waits for `MAX_WAIT` seconds at most.  Whoever is not done then (a thread that holds a
    lock and waits for the fork itself, say) is left behind: the child gets that lock free, and
    imports such a module of the library anew.
3.  Locks inside NumPy are free in the child; those of convcore's generators are not held then.

Nothing is promised of objects that another thread was changing without a lock of the library, of
other libraries' locks, and of threads of the parent that the child waits for.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
import time
import weakref
from typing import Any

MAX_WAIT = 10.0  # seconds

# Their modules do nothing on being imported that a fork could not wait for.
_WATCHED = ("convcore", "numpy", "scipy", "threadpoolctl")

_PAUSE = 1e-3  # seconds between looks

# By id, weakly: locks that a fork takes, and locks that are free in a child.
_taken: dict[int, weakref.ref] = {}
_reset: dict[int, weakref.ref] = {}
# What each forking thread has taken.
_held: dict[int, list[Any]] = {}


def process_lock() -> Any:
    """Return a reentrant lock that a fork takes first, so that it is free in the child."""
    lock = threading.RLock()
    _add(_taken, lock)
    return lock


def free_in_child(lock: Any) -> None:
    """Have a lock of another library, if it is Python's, free in forked children."""
    if hasattr(lock, "_at_fork_reinit"):
        _add(_reset, lock)


def _add(locks: dict[int, weakref.ref], lock: Any) -> None:
    key = id(lock)
    locks[key] = weakref.ref(lock, lambda _: locks.pop(key, None))


def _living(locks: dict[int, weakref.ref]) -> list[Any]:
    return [lock for reference in list(locks.values()) if (lock := reference()) is not None]


def take_locks() -> None:
    """Take all locks, without waiting for one while holding another."""
    deadline = time.monotonic() + MAX_WAIT
    while True:
        held, missing = _try_all()
        is_late = time.monotonic() > deadline
        if is_late or not (missing or _imported_elsewhere()):
            _held[threading.get_ident()] = held
            return
        _release(held)
        if not missing:
            time.sleep(_PAUSE)
        elif missing[0].acquire(timeout=max(deadline - time.monotonic(), 0)):
            missing[0].release()


def _try_all() -> tuple[list[Any], list[Any]]:
    """Return the locks that were taken, and those that other threads hold."""
    held: list[Any] = []
    missing: list[Any] = []
    for lock in _living(_taken):
        (held if lock.acquire(blocking=False) else missing).append(lock)
    return held, missing


def _release(held: list[Any]) -> None:
    while held:
        held.pop().release()


def release_locks() -> None:
    """Let go of what `take_locks` took, in the parent."""
    _release(_held.pop(threading.get_ident(), []))


def free_locks() -> None:
    """Let go of what `take_locks` took, in the child, and replace what other threads held."""
    held = _held.pop(threading.get_ident(), [])
    _held.clear()
    own = set(map(id, held))
    for lock in (*_living(_taken), *_living(_reset)):
        if id(lock) not in own:
            lock._at_fork_reinit()
    _release(held)


def _module_locks() -> dict[str, Any]:
    """Return Python's locks of the modules that are imported now, as weak references by name."""
    return getattr(getattr(importlib, "_bootstrap", None), "_module_locks", {})


def _imported_elsewhere() -> list[str]:
    """Return the names of the watched modules that other threads import now."""
    here, found = threading.get_ident(), []
    for name, reference in list(_module_locks().items()):
        if name.partition(".")[0] in _WATCHED:
            owner = getattr(reference(), "owner", None)
            if owner is not None and owner != here:
                found.append(name)
    return found


def wait_for_imports() -> None:
    """Wait until no other thread imports a watched module."""
    deadline = time.monotonic() + MAX_WAIT
    while _imported_elsewhere() and time.monotonic() < deadline:
        time.sleep(_PAUSE)


def forget_imports() -> None:
    """Have the child import anew what another thread was importing at the fork."""
    for name in _imported_elsewhere():
        _module_locks().pop(name, None)
        spec = getattr(sys.modules.get(name), "__dict__", {}).get("__spec__")
        if name.startswith("convcore.") and getattr(spec, "_initializing", False):
            del sys.modules[name]


# Handlers run in the opposite order before a fork: imports, which are quick, are looked at last.
# `convcore.engine.runtime.locks` registers those of the locks.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=wait_for_imports, after_in_child=forget_imports)
