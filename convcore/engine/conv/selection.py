"""Restrict the choice of algorithm: force one, forbid some, strict mode, reduced precision.

A process-wide setting that a context (a thread, an asyncio task) can override for a while.  The
public interface is `convcore.backends.conv`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

from convcore.engine.conv.algorithms import NAMES
from convcore.engine.runtime._restoring import Restoring, put_back
from convcore.engine.runtime.locks import process_lock

# PyTorch's names for the precision of float32 products.  Only "bf16" rounds factors here.
PRECISIONS = ("none", "ieee", "tf32", "bf16")


# Compared and hashed by identity, which is fast: it is part of every call's cache key.
@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """A user's restrictions; `selection_of` returns the same object for equal values."""

    algorithm: str | None
    forbidden: frozenset[str]
    strict: bool
    precision: str
    matmul: str

    @property
    def bfloat16(self) -> bool:
        """Return whether the factors of float32 products may be rounded to bfloat16."""
        return self.precision == "bf16"


def selection_of(
    algorithm: str | None = None,
    forbidden: frozenset[str] = frozenset(),
    strict: bool = False,
    precision: str = "none",
    matmul: str = "none",
) -> Selection:
    """Return the unique Selection of these values."""
    return _selection(algorithm, forbidden, strict, precision, matmul)


# Called by position: the cache treats calls with keywords as different.
_selection = functools.cache(Selection)


class _Laid:
    """The selection that a context puts over the process's setting; None after it is removed."""

    __slots__ = ("selection",)

    def __init__(self, selection: Selection | None) -> None:
        self.selection = selection


_default = selection_of()
_changing = process_lock()
_laid_over: ContextVar[_Laid | None] = ContextVar("convcore selection", default=None)
_get = _laid_over.get


def current() -> Selection:
    """Return the selection in force in this context."""
    found = _get()
    return _default if found is None or found.selection is None else found.selection


class Given(TypedDict, total=False):
    """Keyword arguments of `select` and `selected`; omitted ones stay as they are."""

    algorithm: str | None
    forbidden: Iterable[str]
    strict: bool
    precision: str
    """Precision of the products of float32 convolutions."""
    matmul: str
    """Precision of the products of float32 matrix multiplications."""


def select(**given: Unpack[Given]) -> None:
    """Change the given settings, in the current `selected` block, or process-wide outside of one.

    Raises
    ------
    TypeError, ValueError
        An unknown algorithm or precision, not a bool, or an algorithm both forced and forbidden.
    """
    global _default
    if (inner := _get()) is not None and inner.selection is not None:
        _laid_over.set(_Laid(_changed(inner.selection, given)))
        return
    with _changing:
        _default = _changed(_default, given)


class selected(Restoring):
    """Context manager that changes the given settings in this context; errors as `select`."""

    def __init__(self, **given: Unpack[Given]) -> None:
        self._given = given

    def _enter(self) -> None:
        _laid_over.set(_Laid(_changed(current(), self._given)))

    def _back(self) -> tuple:
        return ((put_back, (_laid_over, _get(), "selection")),)


def _changed(selection: Selection, given: Given) -> Selection:
    """Return the selection with the given values replaced."""
    values = {name: getattr(selection, name) for name in _CHECKED}
    values |= {name: _CHECKED[name](value) for name, value in given.items()}
    if values["algorithm"] in values["forbidden"]:
        raise ValueError(f"{values['algorithm']!r} is both forced (algorithm) and forbidden")
    return selection_of(**values)


def _checked_algorithm(algorithm: str | None) -> str | None:
    if algorithm is not None:
        _check_name("algorithm must be None or", algorithm)
    return algorithm


def _checked_names(forbidden: Iterable[str]) -> frozenset[str]:
    if not isinstance(forbidden, Iterable):
        raise TypeError(f"forbidden must be names of algorithms, got {forbidden!r}")
    names = frozenset((forbidden,) if isinstance(forbidden, str) else forbidden)
    for name in names:
        _check_name("forbidden must have names out of", name)
    return names


def _checked_bool(strict: bool) -> bool:
    if not isinstance(strict, bool):
        raise TypeError(f"strict must be True or False, got {strict!r}")
    return strict


def _checked_precision(precision: str) -> str:
    if precision not in PRECISIONS:
        error = ValueError if isinstance(precision, str) else TypeError
        allowed = ", ".join(map(repr, PRECISIONS))
        raise error(f"fp32_precision must be one of {allowed}; got {precision!r}")
    return precision


def _check_name(rule: str, name: object) -> None:
    if name not in NAMES:
        error = ValueError if isinstance(name, str) else TypeError
        raise error(f"{rule} {', '.join(map(repr, NAMES))}; got {name!r}")


_CHECKED: dict[str, Callable[[Any], Any]] = {
    "algorithm": _checked_algorithm,
    "forbidden": _checked_names,
    "strict": _checked_bool,
    "precision": _checked_precision,
    "matmul": _checked_precision,
}
