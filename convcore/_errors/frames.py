"""The user's line among the calls that are going on."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

_OWN = str(Path(__file__).parents[1]) + os.sep  # the folder of convcore


def users_frame() -> tuple[FrameType, int]:
    """Return the innermost call outside convcore, and how many calls above the caller it stands.

    A warning with that number for its level names the user's line.
    """
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OWN):
        frame, level = frame.f_back, level + 1
    return frame, level


def is_from_signal_handler(error: BaseException) -> bool:
    """Return whether a signal's handler raised an error: it belongs to the user, not to a net."""
    handlers = {_code_of(signal.getsignal(number)) for number in signal.valid_signals()} - {None}
    frames = traceback.walk_tb(error.__traceback__)
    return any(frame.f_code in handlers for frame, _ in frames)


def _code_of(handler: Any) -> CodeType | None:
    """Return the code of a function, method, partial, or callable object's class."""
    while hasattr(handler, "func"):  # a partial's
        handler = handler.func
    if not hasattr(handler, "__code__"):
        handler = vars(type(handler)).get("__call__")
    return getattr(handler, "__code__", None)
