"""The user's line among the calls that are going on."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_OWN = str(Path(__file__).parent) + os.sep


def users_level() -> int:
    """Return how many calls above the caller the user's line stands, as `warnings.warn` counts."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OWN):
        frame, level = frame.f_back, level + 1
    return level
