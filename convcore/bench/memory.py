"""How much memory a process holds, and the most that it held since a moment.

Linux keeps a process's present resident size in VmRSS and its largest in VmHWM, and forgets the
largest when 5 is written to clear_refs (proc(5)).  Elsewhere only the largest ever is known: it
stands in for both.

Pages of files do not count where Linux tells them apart (RssFile): they are a library's code, read
when it is first needed, and no memory that the work takes.
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
        self.forget()
        self._before, self._code = _resident("VmRSS"), _of_files()

    def forget(self) -> None:
        """Leave out what was held until now and no longer is."""
        with suppress(OSError):
            _FORGET.write_text("5")

    @property
    def added(self) -> int:
        """Return the most bytes above the beginning, so far."""
        code = max(0, _of_files() - self._code)
        return max(0, _resident("VmHWM") - self._before - code)


def _resident(field: str) -> int:
    known = _kernels(field)
    return _largest_ever() if known is None else known


def _of_files() -> int:
    return _kernels("RssFile") or 0


def _kernels(field: str) -> int | None:
    """Return the bytes that Linux reports in a field, or None elsewhere."""
    try:
        found = re.search(field + r":\s+(\d+) kB", _STATUS.read_text())
    except OSError:
        return None
    return int(found[1]) << 10 if found else None


def _largest_ever() -> int:
    try:
        import resource  # not on Windows
    except ImportError:
        return 0
    scale = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale
