"""Interrupts at a chosen instruction of convcore's Python code, where a signal could come."""

from __future__ import annotations

import dis
import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import convcore

PACKAGE = str(Path(convcore.__file__).parent)
# Python looks for signals after these instructions, and as a function begins or goes on.
_CHECKING = {
    number
    for name, number in dis.opmap.items()
    if name.startswith(("CALL", "JUMP_BACKWARD", "INSTRUMENTED_CALL"))
    and "INTRINSIC" not in name
    and "NO_INTERRUPT" not in name
}


def interrupted_at(
    number: int, call: Callable[..., Any], *args: Any, where: str = PACKAGE, anywhere: bool = False
) -> bool:
    """Raise KeyboardInterrupt at a place of a call; return whether the call came so far.

    Parameters
    ----------
    number : int
        Of the place, from 0 on.
    call, args
        The function and its arguments.
    where : str
        Part of the names of the files whose instructions count.
    anywhere : bool
        Whether all instructions are places: by default those at which Python looks for signals.
    """
    left = itertools.count(-number)
    run = _traced(call, args, where, anywhere, left)
    try:
        run()
    except KeyboardInterrupt:
        return True
    return False


def count_places(
    call: Callable[..., Any], *args: Any, where: str = PACKAGE, anywhere: bool = False
) -> int:
    """Return the number of places of a call."""
    left = itertools.count(1)
    _traced(call, args, where, anywhere, left)()
    return next(left) - 1


def _is_in_finalizer(frame: Any) -> bool:
    """Return whether `__del__` is running: Python prints its exceptions and goes on."""
    while frame is not None:
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


def _traced(
    call: Callable[..., Any], args: tuple, where: str, anywhere: bool, left: Any
) -> Callable[[], None]:
    def begin(frame: Any, event: str, argument: Any) -> Any:
        if where not in frame.f_code.co_filename or _is_in_finalizer(frame):
            return None
        frame.f_trace_opcodes = True
        if next(left) == 0:
            raise KeyboardInterrupt
        code, last = frame.f_code.co_code, None

        def trace(frame: Any, event: str, argument: Any) -> Any:
            nonlocal last
            if event == "opcode":
                before, last = last, code[frame.f_lasti]
                if (anywhere or before in _CHECKING) and next(left) == 0:
                    raise KeyboardInterrupt
            return trace

        return trace

    def run() -> None:
        outer = sys.gettrace()
        sys._getframe().f_trace_opcodes = True  # Python 3.12 asks for it at settrace
        sys.settrace(begin)
        try:
            call(*args)
        finally:
            sys.settrace(outer)

    return run
