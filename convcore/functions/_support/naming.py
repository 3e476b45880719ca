"""Errors that name the argument: an AttributeError from deep inside, made a TypeError afterwards.

An unknown keyword gets a hint at the one that was meant.

Nothing is checked before a call: what an argument lacks is looked up once the call has failed.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from convcore import _hints
from convcore._tensor import Tensor
from convcore.functions._support.arguments import typename

Function = TypeVar("Function", bound=Callable)

# What a call may fail with because an argument is no tensor, too large a number, or unknown.
UNNAMED = (AttributeError, OverflowError, TypeError)


def explained(name: str, function: Callable, error: Exception, args: tuple, kwargs: dict) -> Any:
    """Return the error to raise for one of a call: it names the argument, if one is to blame."""
    if isinstance(error, TypeError):
        _hints.hint_keyword(error, function)
        return error
    try:
        given = inspect.signature(function).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return error
    for to_blame in _judges(error):
        for position, (argument, value) in enumerate(given.items(), 1):
            for one in (value, *value) if isinstance(value, list | tuple) else (value,):
                if to_blame(one):
                    place = f"{name}(): argument '{argument}' (position {position})"
                    if isinstance(error, AttributeError):
                        return TypeError(f"{place} must be Tensor, not {typename(one)}")
                    return RuntimeError(f"{place} is too large: {one}")
    return error


def _judges(error: Exception) -> tuple[Callable[[Any], bool], ...]:
    """Return what to ask of each argument whether it is to blame: the surest question first."""
    if not isinstance(error, AttributeError):
        return (_is_too_large,)
    found = error.obj
    lacks = lambda value: value is found and not isinstance(value, Tensor)  # noqa: E731
    if type(found) not in (bool, int, float, complex):
        return (lacks,)
    # A number that may have been made of the argument.
    return lacks, lambda value: isinstance(value, bool | int | float | complex | np.generic)


def _is_too_large(value: Any) -> bool:
    if isinstance(value, float):
        return not math.isfinite(value)
    return isinstance(value, int) and not -(2**31) <= value < 2**31


def names_arguments(function: Function) -> Function:
    """Let a function that takes tensors say which argument is none."""

    @functools.wraps(function)
    def naming(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except UNNAMED as error:
            better = explained(function.__name__, function, error, args, kwargs)
            if better is error:
                raise
        raise better

    return naming  # type: ignore[return-value]
