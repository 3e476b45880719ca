"""A context variable that runs out of memory, after it was set or before."""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import Any


class Failing:
    """Stands for a ContextVar, whose changes fail from number ``first`` on."""

    def __init__(self, variable: ContextVar, first: int, changed: bool) -> None:
        self.variable, self.left, self.changed = variable, first, changed
        self.get = variable.get

    def set(self, value: Any) -> Token:
        """Set the variable, or fail; which may be after it was set."""
        self.left -= 1
        if self.left >= 0:
            return self.variable.set(value)
        if self.changed:
            self.variable.set(value)
        raise MemoryError

    def reset(self, token: Token) -> None:
        """Fail, or set the variable back."""
        self.left -= 1
        if self.left >= 0 or self.changed:
            self.variable.reset(token)
        if self.left < 0:
            raise MemoryError
