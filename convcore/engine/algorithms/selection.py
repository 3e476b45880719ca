"""Which algorithms may be chosen: one forced, some forbidden, strict mode.

A setting of the whole process, over which a context (a thread, an asyncio task) may have its own
for a while.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass


# Compared and hashed by identity, for the calls' cache: equal selections are one object.
@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """What a user asks of the choice; made by `selection_of`."""

    algorithm: str | None
    forbidden: frozenset[str]
    strict: bool


@functools.cache
def selection_of(
    algorithm: str | None = None, forbidden: frozenset[str] = frozenset(), strict: bool = False
) -> Selection:
    """Return the one Selection of these values."""
    return Selection(algorithm, forbidden, strict)


_default = selection_of()


def current() -> Selection:
    """Return the selection that is in force here."""
    return _default
