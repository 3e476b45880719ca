"""The user's line among the calls that are going on."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import FrameType

_OWN = str(Path(__file__).parent) + os.sep


def users_frame() -> tuple[FrameType, int]:
    """Return the innermost call outside convcore, and how many calls above the caller it stands.

    A warning with that number for its level names the user's line.
    """
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OWN):
        frame, level = frame.f_back, level + 1
    return frame, level
