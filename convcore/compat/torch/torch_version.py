"""PyTorch's version, which compares with strings and tuples of numbers."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["TorchVersion"]


class TorchVersion(str):
    """A version such as '2.13.0+convcore'; a local part after '+' does not count.

    Examples
    --------
    >>> TorchVersion("2.13.0+convcore") > "2.9", TorchVersion("2.13.0") >= (2, 14)
    (True, False)
    """

    __slots__ = ()

    def _pair(self, other: Any) -> tuple[list[int], list[int]]:
        left, right = _numbers(self), _numbers(other)
        length = max(len(left), len(right))
        return tuple(n + [0] * (length - len(n)) for n in (left, right))  # type: ignore[return-value]

    def __lt__(self, other: Any) -> bool:
        left, right = self._pair(other)
        return left < right

    def __le__(self, other: Any) -> bool:
        left, right = self._pair(other)
        return left <= right

    def __gt__(self, other: Any) -> bool:
        return not self <= other

    def __ge__(self, other: Any) -> bool:
        return not self < other

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return str.__eq__(self, other) or _numbers(self) == _numbers(other)
        return isinstance(other, tuple | list) and _numbers(self) == _numbers(other)

    def __hash__(self) -> int:
        return str.__hash__(self)


def _numbers(version: Any) -> list[int]:
    """Return the release of a version as numbers: [2, 13, 0]."""
    if isinstance(version, str):
        return [int(part) for part in re.findall(r"\d+", version.partition("+")[0])]
    return [int(part) for part in version]
