"""Usage errors, without a traceback: wrong commands and options, missing packages."""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path


class UsageError(Exception):
    """A command that cannot be run as given; the message tells the user why."""


def count(text: str) -> int:
    """Parse a whole number above 0."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number above 0, got {text!r}")
    return int(text)


def seed(text: str) -> int:
    """Parse a seed of random numbers, which all that draws here takes."""
    if not text.isascii() or not text.isdigit() or int(text) >= 2**32:
        raise argparse.ArgumentTypeError(f"must be a whole number below 2**32, got {text!r}")
    return int(text)


def require_place(option: str, file: Path) -> None:
    """Raise a `UsageError` unless a file can be there: before anything runs, not after it."""
    if not file.absolute().parent.is_dir():
        raise UsageError(f"{option}: there is no directory {file.parent}")
    if file.is_dir():
        raise UsageError(f"{option}: {file} is a directory, not a file")


def require_extra(extra: str, *modules: str) -> None:
    """Raise a `UsageError` that names the extra to install if any of the modules is missing."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise UsageError(
            f"{' and '.join(missing)} {verb} not installed; get what this command needs with: "
            f"pip install 'convcore[{extra}]'"
        )
