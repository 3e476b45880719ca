"""Hints: what people most often meant, in one sentence below the text of an error.

The text itself is PyTorch's, for programs match it.  A hint is a note (PEP 678): tracebacks show it
below the text, ``str(error)`` is without it.  Nothing here runs before something has failed.

Each file has the hints of one kind of mistake; ``words.py`` finds the name that was meant.
"""

from __future__ import annotations

from typing import TypeVar

from convcore._hints import data as data
from convcore._hints import graph as graph
from convcore._hints import inputs as inputs
from convcore._hints import kernels as kernels
from convcore._hints import losses as losses
from convcore._hints import modules as modules
from convcore._hints import states as states
from convcore._hints.words import nearest as nearest

_Error = TypeVar("_Error", bound=BaseException)


def hinted(error: _Error, hint: str) -> _Error:
    """Return an error with a hint below its text; with none if the hint is empty."""
    note = f"Hint: {hint}"
    if hint and note not in getattr(error, "__notes__", ()):  # it may be raised twice
        error.add_note(note)
    return error
