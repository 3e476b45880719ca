"""Sizes that `torch.onnx.export` leaves free; nothing else of `torch.export` is there."""

from __future__ import annotations

from enum import Enum
from typing import Any


class _DimHintType(Enum):
    AUTO = 1
    STATIC = 2
    DYNAMIC = 3


class _DimHint:
    """A size that is free, or not, without a name: `Dim.AUTO`, `Dim.DYNAMIC`, `Dim.STATIC`."""

    def __init__(self, type: _DimHintType, min: int | None = None, max: int | None = None) -> None:
        self.type, self.min, self.max = type, min, max

    def __call__(self, min: int | None = None, max: int | None = None) -> _DimHint:
        """Return the same between bounds."""
        return _DimHint(self.type, min, max)

    def __repr__(self) -> str:
        return f"DimHint({self.type.name}{_bounds(self)})"


class Dim:
    """A size that is free, under a name, between bounds.

    Whole multiples of it, plus a number, have the name of that expression: ``2*batch + 1``.
    """

    AUTO = _DimHint(_DimHintType.AUTO)
    DYNAMIC = _DimHint(_DimHintType.DYNAMIC)
    STATIC = _DimHint(_DimHintType.STATIC)

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        low = 0 if min is None else min
        if max is not None and max <= low:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        self._root, self._factor, self._more = name, 1, 0
        self.__name__, self.min, self.max = name, low, max

    def _derived(self, factor: int, more: int) -> Dim:
        new = Dim(self._root)
        new._factor, new._more = self._factor * factor, self._more * factor + more
        multiple = self._root if new._factor == 1 else f"{new._factor}*{self._root}"
        sign = "+" if new._more > 0 else "-"
        new.__name__ = f"{multiple} {sign} {abs(new._more)}" if new._more else multiple
        new.min = self.min * factor + more
        new.max = None if self.max is None else self.max * factor + more
        return new

    def __add__(self, other: int) -> Dim:
        return self._derived(1, _whole(other, "add"))

    def __sub__(self, other: int) -> Dim:
        return self._derived(1, -_whole(other, "subtract"))

    def __mul__(self, other: int) -> Dim:
        if _whole(other, "multiply") <= 0:
            raise NotImplementedError(f"Dim: a positive int is needed to multiply, got {other}")
        return self._derived(other, 0)

    __radd__, __rmul__ = __add__, __mul__

    def __repr__(self) -> str:
        return f"Dim({self.__name__!r}{_bounds(self)})"


def _whole(value: Any, verb: str) -> int:
    if type(value) is not int:
        raise NotImplementedError(f"Dim: an int is needed to {verb}, got {value!r}")
    return value


def _bounds(value: Dim | _DimHint) -> str:
    low = f", min={value.min}" if value.min else ""
    return low if value.max is None else f"{low}, max={value.max}"


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Return a `Dim` for each name."""
    return tuple(Dim(name, min=min, max=max) for name in names)


__all__ = ["Dim", "dims"]
