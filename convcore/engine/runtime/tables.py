"""Tables that layers need, kept for calls of the same sizes: a bounded number of bytes in all."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from convcore.engine.runtime.locks import process_lock

# The tables of a line of a million elements have 28 MB: avg_pool1d of (1, 4, 1000000), kernel 3,
# took 48 ms with tables made anew, and takes 0.4 with kept ones (two threads of an AMD EPYC).
MOST_BYTES = 64 << 20
# For how many bytes each counts at least: there are objects beside its tables.
LEAST_BYTES = 1 << 16

_kept: OrderedDict[tuple, tuple[Any, int]] = OrderedDict()  # first what was not used for longest
_total = 0
_lock = process_lock()


def kept_tables(make: Callable[..., Any]) -> Callable[..., Any]:
    """Keep what ``make(*key)`` returns, which says how large its tables are: ``table_bytes``.

    Of all that any function makes, what was not used for longest is let go.
    """

    @functools.wraps(make)
    def find(*key: Any) -> Any:
        place = make, key
        with _lock:
            found = _kept.get(place)
            if found is not None:
                _kept.move_to_end(place)
                return found[0]
        made = make(*key)
        _keep(place, made)
        return made

    find.cache_clear = clear
    return find


def _keep(place: tuple, made: Any) -> None:
    global _total
    size = max(made.table_bytes, LEAST_BYTES)
    with _lock:
        if place in _kept or size > MOST_BYTES:
            return
        _kept[place] = made, size
        _total += size
        while _total > MOST_BYTES:
            _total -= _kept.popitem(last=False)[1][1]


def clear() -> None:
    """Let go of all that is kept."""
    global _total
    with _lock:
        _kept.clear()
        _total = 0


def kept_bytes() -> int:
    """Return for how many bytes all counts that is kept."""
    return _total
