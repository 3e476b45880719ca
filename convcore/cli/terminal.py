"""Text for a terminal of any width; streams that are closed, full, or read by nobody any longer."""

from __future__ import annotations

import os
import re
import select
import shutil
import sys
import textwrap

_HANGING = 4


def columns() -> int:
    """Return the terminal's width, or COLUMNS; 0 where there is neither, as in a pipe."""
    return shutil.get_terminal_size((0, 0)).columns


def fitted(text: str, width: int | None = None) -> str:
    """Return text whose lines are no wider than a terminal, broken between words.

    Parameters
    ----------
    text : str
        Lines; two spaces or more separate what is next to one another in a table.
    width : int, optional
        The terminal's by default; 0 leaves all lines as they are.
    """
    width = columns() if width is None else width
    lines = text.split("\n")
    if width:
        lines = [part for line in lines for part in _broken(line, width)]
    return "\n".join(lines)


def _broken(line: str, width: int) -> list[str]:
    """Break a line between a table's columns where that will do, else between words."""
    if len(line.rstrip()) <= width:
        return [line.rstrip()]
    if not line.strip("-"):
        return [line[:width]]
    indent = " " * (len(line) - len(line.lstrip()))
    hanging = indent + " " * _HANGING
    lines = [""]
    for cell in re.split(r" {2,}", line.strip()):
        start = f"{lines[-1]}  " if lines[-1] else indent if len(lines) == 1 else hanging
        if len(start + cell) <= width or not lines[-1]:
            lines[-1] = start + cell
        else:
            lines.append(hanging + cell)
    return [part for one in lines for part in _wrapped(one, width, hanging)]


def _wrapped(line: str, width: int, hanging: str) -> list[str]:
    if len(line) <= width:
        return [line]
    return textwrap.wrap(
        line, width, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False
    )


def reader_is_gone() -> bool:
    """Return whether standard output is a pipe that nobody reads any longer."""
    if not hasattr(select, "poll"):  # Windows, which has no other broken pipe to tell it from
        return True
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)  # the errors alone, which need not be asked for
    return bool(poll.poll(0))


def output_fault() -> OSError | None:
    """Return the error for which standard output takes nothing more, as on a full disk."""
    try:
        print(end="", flush=True)  # even without a buffer: an empty write tells of /dev/full
    except OSError as error:
        return error
    return None


def open_standard_streams() -> None:
    """Open what a caller has closed: else the next file that is opened would get its number."""
    for name, how in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, how, encoding="utf-8"))  # noqa: SIM115


def silence_output() -> None:
    """Send the rest of standard output nowhere, so that the interpreter's own end is quiet too."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
