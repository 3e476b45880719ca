"""Time that this process's threads waited for a core, for other programs had it.

References
----------
Linux, Documentation/scheduler/sched-stats.rst, "/proc/<pid>/schedstat": the second number.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def waited() -> float:
    """Return the seconds until now, of all threads that there are; 0 where nothing tells."""
    total = 0
    for file in Path("/proc/self/task").glob("*/schedstat"):
        with suppress(OSError, IndexError, ValueError):  # a thread that ends meanwhile
            total += int(file.read_text().split()[1])
    return 1e-9 * total
