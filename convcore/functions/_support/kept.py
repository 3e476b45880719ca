"""What a function finds out about an array's shape and its options: once, then a look-up."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import NoneType
from typing import Any, TypeVar

import numpy as np

Made = TypeVar("Made", bound=tuple)

# Of each maker, and the bytes of tables of one, which those of long lines exceed: 16 MiB in all.
# The engine keeps a few of those: see engine/layers/interpolation/separable.py.
MOST_KEPT = 256
MOST_TABLE_BYTES = 1 << 16

_PLAIN = frozenset((bool, int, str, NoneType))


def kept(make: Callable[..., Made]) -> Callable[..., Made]:
    """Keep the tuple ``make(array, *options)``, by the array's shape and dtype and the options.

    It may depend on nothing else of the array.  Options have types: 2.0 is not 2, nor is True 1.
    What is neither a number, a text, None nor a sequence of those is looked at anew at each call;
    so are what raises and what holds large tables: ``table_bytes`` of its parts, if they have that.
    """
    found: dict[tuple, Made] = {}

    @functools.wraps(make)
    def find(array: np.ndarray, *options: Any) -> Made:
        try:
            key = array.shape, array.dtype, _key(options)
        except TypeError:
            return make(array, *options)
        made = found.get(key)
        if made is None:
            made = make(array, *options)
            if sum(getattr(part, "table_bytes", 0) for part in made) > MOST_TABLE_BYTES:
                return made
            if len(found) >= MOST_KEPT:
                found.clear()
            found[key] = made
        return made

    find.kept, find.cache_clear = found, found.clear  # type: ignore[attr-defined]
    return find


def _key(options: Sequence[Any]) -> tuple:
    """Return what tells options from all others; TypeError if one may change, or is unknown."""
    types = tuple(map(type, options))
    if _PLAIN.issuperset(types):
        return types, tuple(options)
    return types, tuple(map(_key_of_one, options))


def _key_of_one(option: Any) -> Any:
    kind = option.__class__
    if kind in _PLAIN:
        return option
    if kind is float:
        return option.hex()  # tells -0.0 from 0.0, and a NaN is itself
    if isinstance(option, tuple | list):
        return _key(option)
    raise TypeError
