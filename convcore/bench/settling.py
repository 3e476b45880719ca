"""Waiting until a process's other threads have stopped spinning.

After a parallel region, threads of OpenMP and BLAS spin for a while in case there is more to do:
those of GNU's OpenMP for some 10 ms, of Intel's for 200 ms.  A peer timed meanwhile would share its
CPUs with them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE_SECONDS = 0.5
_TASKS = Path("/proc/self/task")
_POLL_SECONDS = 1e-3
# Elsewhere than on Linux.  A running thread's CPU time is added up at the system's tick, every 4 to
# 16 ms: a shorter look would miss one that spins.
_LOOK_SECONDS = 0.02

Clock = Callable[[], float]
Sleep = Callable[[float], None]


def settle(
    clock: Clock = time.monotonic,
    cpu_clock: Clock = time.process_time,
    sleep: Sleep = time.sleep,
) -> None:
    """Sleep until no other thread of this process runs, or patience ends."""
    deadline = clock() + PATIENCE_SECONDS
    on_linux = _TASKS.exists()
    while not (_all_sleep() if on_linux else _used_no_time(cpu_clock, sleep)):
        if clock() >= deadline:
            return
        sleep(_POLL_SECONDS)


def _all_sleep() -> bool:
    """Return whether all other threads are asleep, by the state that Linux shows."""
    own = str(threading.get_native_id())
    return not any(_runs(task) for task in _TASKS.iterdir() if task.name != own)


def _runs(task: Path) -> bool:
    try:
        # pid (name) state ...; a name may hold anything, brackets too.
        return (task / "stat").read_text().rpartition(") ")[2].startswith("R")
    except OSError:
        return False  # ended meanwhile


def _used_no_time(cpu_clock: Clock, sleep: Sleep) -> bool:
    """Return whether this process used next to no CPU time while we slept."""
    before = cpu_clock()
    sleep(_LOOK_SECONDS)
    return cpu_clock() - before < _LOOK_SECONDS / 10
