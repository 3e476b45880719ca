"""How much memory a process holds, and the most that it held since a moment.

Linux keeps a process's present resident size in VmRSS and its largest in VmHWM, and forgets the
largest when 5 is written to clear_refs (proc(5)).  Elsewhere only the largest ever is known: it
stands in for both.
"""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from pathlib import Path

_STATUS = Path("/proc/self/status")
_FORGET = Path("/proc/self/clear_refs")


class PeakMemory:
    """The most memory held above what was held when this was made, in bytes."""

    def __init__(self) -> None:
        with suppress(OSError):
            _FORGET.write_text("5")
        self._before = _resident("VmRSS")

    @property
    def added(self) -> int:
        """Return the most bytes above the beginning, so far."""
        return max(0, _resident("VmHWM") - self._before)


def _resident(field: str) -> int:
    try:
        found = re.search(field + r":\s+(\d+) kB", _STATUS.read_text())
    except OSError:
        found = None
    return int(found[1]) << 10 if found else _largest_ever()


def _largest_ever() -> int:
    try:
        import resource  # not on Windows
    except ImportError:
        return 0
    scale = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale
