"""Ints as arguments: what counts as one."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

_BOOL = "'bool' object cannot be interpreted as an integer"


def as_int(value: Any) -> int:
    """Return an int, or what stands for one, such as NumPy's or a tensor of one, as an int.

    Raises
    ------
    TypeError
        It is none, or a bool: where one stands, another argument was meant.
    """
    if value.__class__ is bool:
        raise TypeError(_BOOL)
    return operator.index(value)


def is_int(value: Any) -> bool:
    """Return whether a value is an int, or stands for one, as a tensor of one int."""
    try:
        as_int(value)
    except TypeError:
        return False
    return True


def as_ints(values: Iterable[Any]) -> tuple[int, ...]:
    """Return several values as ints; as in PyTorch, only the first may not be a bool."""
    values = tuple(values)
    if values and values[0].__class__ is bool:
        raise TypeError(_BOOL)
    return tuple(map(operator.index, values))


def as_dim(dim: Any) -> int:
    """Return the number of an axis as an int; a TypeError names the argument."""
    try:
        return as_int(dim)
    except TypeError:
        raise TypeError(f"argument 'dim' must be int, not {type(dim).__name__}") from None
