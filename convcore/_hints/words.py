"""Names: the one that a misspelt one was meant to be."""

from __future__ import annotations

import re
from collections.abc import Iterable


def nearest(word: str, words: Iterable[str], least: float = 0.7) -> str:
    """Return the word that is most like a misspelt one, at ``least`` so much; '' if none is."""
    from difflib import get_close_matches

    known = list(words)
    same = [one for one in known if one.lower() == word.lower()]
    close = same or get_close_matches(word, known, 9, least) or _with_words_of(word, known)
    # Swapped letters first: Adma is Adam, though Adam and AdamW are equally near.
    slips = [one for one in close if sorted(one.lower()) == sorted(word.lower())]
    found = [*slips, *close, ""][0]
    # Of BatchNorm1d, 2d and 3d, which are as near to BatchNorm, the one of images.
    of_images = f"{found[:-2]}2d"
    is_tie = found[-2:] in ("1d", "3d") and found[-2] not in word and of_images in close
    return of_images if is_tie else found


def _with_words_of(word: str, known: Iterable[str]) -> list[str]:
    """Return the names that have words in between: CosineAnnealingLR for CosineLR."""
    parts = re.findall("[A-Z][a-z0-9]*", word)
    found = re.compile("[A-Za-z0-9]*".join(parts))
    return sorted(filter(found.fullmatch, known), key=len) if len(parts) > 1 else []
