"""Validation of int arguments."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

_BOOL = "'bool' object cannot be interpreted as an integer"


def as_int(value: Any) -> int:
    """Return value as an int; also accept integer-like objects (NumPy ints, one-element tensors).

    Raises
    ------
    TypeError
        value is not an integer, or is a bool (most likely meant for another argument).
    """
    if value.__class__ is bool:
        raise TypeError(_BOOL)
    return operator.index(value)


def is_int(value: Any) -> bool:
    """Return whether a value is an int or integer-like, such as a tensor with one int."""
    try:
        as_int(value)
    except TypeError:
        return False
    return True


def as_ints(values: Iterable[Any]) -> tuple[int, ...]:
    """Return several values as ints; as in PyTorch, only the first one must not be a bool."""
    values = tuple(values)
    if values and values[0].__class__ is bool:
        raise TypeError(_BOOL)
    return tuple(map(operator.index, values))


def as_dim(dim: Any) -> int:
    """Return an axis number as an int; raise TypeError naming the argument 'dim'."""
    try:
        return as_int(dim)
    except TypeError:
        raise TypeError(f"argument 'dim' must be int, not {type(dim).__name__}") from None
