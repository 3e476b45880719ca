"""Errors without a traceback: usage errors, missing packages, what the machine lacks."""

from __future__ import annotations

import argparse
import errno
import importlib.util
import os
import re
from pathlib import Path


class UsageError(Exception):
    """A command that cannot be run as given; the message tells the user why."""


def count(text: str) -> int:
    """Parse a whole number above 0."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number above 0, got {text!r}")
    return int(text)


def whole_number(text: str) -> int:
    """Parse a whole number, 0 included."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"must be a whole number, 0 or above, got {text!r}")
    return int(text)


def seed(text: str) -> int:
    """Parse a seed of random numbers, which all that draws here takes."""
    if not text.isascii() or not text.isdigit() or int(text) >= 2**32:
        raise argparse.ArgumentTypeError(f"must be a whole number below 2**32, got {text!r}")
    return int(text)


def require_place(option: str, file: Path) -> None:
    """Raise a `UsageError` unless a file can be there: before anything runs, not after it."""
    try:
        if not file.absolute().parent.is_dir():
            raise UsageError(f"{option}: there is no directory {file.parent}")
        if file.is_dir():
            raise UsageError(f"{option}: {file} is a directory, not a file")
        if file.is_char_device():  # /dev/full refuses nothing, too, and /dev/null takes it
            with file.open("wb", buffering=0) as stream:
                stream.write(b"")
        elif not os.access(file if file.exists() else file.absolute().parent, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise UsageError(f"{option}: {file}: {lacking(error)}") from None


# What the dynamic linker and the interpreter say of a library that does not fit.
_NO_ROOM = re.compile(r"failed to map segment|annot allocate memory|Too many open files")


def lacking(error: BaseException) -> str | None:
    """Return in words what the machine refused: memory, descriptors, room on a disk, a file."""
    if isinstance(error, MemoryError):
        return f"out of memory: {error}".removesuffix(": ")
    if isinstance(error, OSError) and error.errno is not None:
        if error.errno == errno.ENOENT and error.filename is None:
            return "the current directory is gone"
        where = f": {error.filename}" if error.filename is not None else ""
        return os.strerror(error.errno) + where
    if isinstance(error, ImportError) and _NO_ROOM.search(str(error)):
        return f"out of memory or descriptors: {error}"
    return None


def is_of_setting(error: BaseException) -> bool:
    """Return whether an error is of a variable of the environment, which its text names."""
    return isinstance(error, ImportError) and str(error).startswith("CONVCORE_")


def require_extra(extra: str, *modules: str) -> None:
    """Raise a `UsageError` that names the extra to install if any of the modules is missing."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise UsageError(
            f"{' and '.join(missing)} {verb} not installed; get what this command needs with: "
            f"pip install 'convcore[{extra}]'"
        )
