"""Tracebacks of programs that a command starts: from the program's first line on."""

from __future__ import annotations

import os
import sys
from types import TracebackType

import convcore
from convcore._errors import hinted, scope
from convcore._errors.missing import NotInConvcoreError

_PACKAGE = os.path.dirname(convcore.__file__)


def hide_launcher() -> None:
    """Show errors that a program does not catch as `python` does, without what started it."""
    before = sys.excepthook

    def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if isinstance(error, ModuleNotFoundError):
            hinted(error, scope.instead_of_package(error.name or ""))
        own = of_program(trace)
        if isinstance(error, SyntaxError) and own is trace:  # of the program, before its first line
            own = None
            hinted(error, "" if error.filename else f"is {sys.argv[0]!r} a program in Python?")
        if isinstance(error, NotInConvcoreError):
            _cut(own)
        before(kind, error.with_traceback(own), own)

    sys.excepthook = show


def of_program(trace: TracebackType | None) -> TracebackType | None:
    """Return the part of a traceback below what started the program; all of it if that is none."""
    found = trace
    while found is not None and not _is_here(found):
        found = found.tb_next
    while found is not None and (_is_here(found) or _file(found) == "<frozen runpy>"):
        found = found.tb_next
    return found or trace


def _cut(trace: TracebackType | None) -> None:
    """Cut a traceback after the line of the program: how convcore looked for a name is no help."""
    last = None
    while trace is not None:
        if not _file(trace).startswith((_PACKAGE, "<frozen importlib")):
            last = trace
        trace = trace.tb_next
    if last is not None:
        last.tb_next = None


def _file(trace: TracebackType) -> str:
    return trace.tb_frame.f_code.co_filename


def _is_here(trace: TracebackType) -> bool:
    """Return whether a line is of this folder's commands."""
    return os.path.dirname(_file(trace)) == os.path.dirname(__file__)
