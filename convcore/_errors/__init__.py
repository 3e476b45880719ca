"""Errors that say what to do: PyTorch's text, and a last line with a hint.

- ``hints.py``: what to do, by what was seen
- ``calls.py``: calls with an unknown keyword, or an argument of a wrong type
- ``names.py``: names that a module does not have

Nothing here runs before something has failed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeVar

_Error = TypeVar("_Error", bound=BaseException)

HINT = "\nHint: "


def hinted(error: _Error, hint: str) -> _Error:
    """Return an error whose message ends in a hint, unless the hint is empty or there already.

    An error whose message is not its only argument, such as a KeyError, gets a note instead.
    """
    if hint and f"{HINT}{hint}" not in str(error):
        _set_message(error, f"{error}{HINT}{hint}")
    return error


def without_hint(error: BaseException) -> str:
    """Return the message of an error up to its hints."""
    return str(error).partition(HINT)[0]


def replace_hint(error: BaseException, hint: str) -> None:
    """Replace the hints of an error, which guessed another cause."""
    _set_message(error, f"{without_hint(error)}{HINT}{hint}")


def _set_message(error: BaseException, text: str) -> None:
    before, note = error.args, text[len(without_hint(error)) + 1 :]
    if len(before) <= 1:
        error.args = (text,)
        if isinstance(error, ImportError):
            error.msg = text
        if str(error) == text:
            return
    error.args = before  # its message is not its argument
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)


def nearest(word: str, words: Iterable[str], cutoff: float = 0.7) -> str:
    """Return the word that a misspelt one was most likely meant to be, or ''."""
    from difflib import get_close_matches

    known = list(words)
    close = [one for one in known if one.lower() == word.lower()]
    close = close or get_close_matches(word, known, 9, cutoff) or _with_words_of(word, known)
    # Swapped letters first: Adma is Adam, though Adam and AdamW are equally near.
    close.sort(key=lambda one: sorted(one.lower()) != sorted(word.lower()))
    best = close[0] if close else ""
    # Of BatchNorm1d, 2d and 3d, which are equally near to BatchNorm, the one for images.
    is_tie = best[-2:] in ("1d", "3d") and best[-2] not in word and f"{best[:-2]}2d" in close
    return f"{best[:-2]}2d" if is_tie else best


def _with_words_of(word: str, known: Iterable[str]) -> list[str]:
    """Return the names that have more words in between: CosineAnnealingLR for CosineLR."""
    parts = re.findall("[A-Z][a-z0-9]*", word)
    pattern = re.compile("[A-Za-z0-9]*".join(parts))
    return sorted(filter(pattern.fullmatch, known), key=len) if len(parts) > 1 else []
