"""A net's own call, told from calls of the net inside it, as a hook of its own may make."""

from __future__ import annotations

import sys
from types import FrameType

from convcore.nn.modules._hooks import HookedCall

_CALL = HookedCall.__call__.__code__


class Nesting:
    """Told by hooks when the net is entered and left.

    Attributes
    ----------
    inner : int
        How many calls inside the net's own call run now.

    Notes
    -----
    A call that was interrupted is never left: hooks do not run then. So the own call is known by
    its frame, which is on this thread's stack as long as the call runs.
    """

    __slots__ = ("_own", "inner")

    def __init__(self) -> None:
        self._own: FrameType | None = None
        self.inner = 0

    def enter(self) -> bool:
        """Note that the net is called; return whether it is its own call."""
        if self._own is not None and _runs(self._own):
            self.inner += 1
            return False
        self._own, self.inner = _innermost_call(), 0
        return True

    def leave(self) -> None:
        """Note that a call of the net ended."""
        if self.inner:
            self.inner -= 1
        else:
            self._own = None

    forget = __init__


def _innermost_call() -> FrameType | None:
    """Return the frame of the call whose hook this is."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code is not _CALL:
        frame = frame.f_back
    return frame


def _runs(call: FrameType) -> bool:
    """Return whether a frame is on this thread's stack."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame is not call:
        frame = frame.f_back
    return frame is not None
