"""Work: a communication that goes on, to be waited for; and ReduceOp, how values are combined."""

from __future__ import annotations

import enum
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from convcore.distributed.group import ProcessGroup, seconds

__all__ = ["ReduceOp", "Work"]


class ReduceOp(enum.Enum):
    """How the values of all processes are combined, element by element."""

    SUM = "SUM"
    PRODUCT = "PROD"
    MIN = "MIN"
    MAX = "MAX"
    BAND = "BAND"
    BOR = "BOR"
    BXOR = "BXOR"
    AVG = "AVG"


class Work:
    """A communication that was begun with ``async_op=True``."""

    def __init__(self, group: ProcessGroup, what: str, request: Any, finish: Callable[[], None]):
        self._group = group
        self._what = what
        self._request = request
        self._finish: Callable[[], None] | None = finish

    def _end(self) -> None:
        finish, self._finish = self._finish, None
        if finish is not None:
            finish()

    def is_completed(self) -> bool:
        """Return whether the result is there; asking moves the communication on."""
        if self._finish is not None and self._request.Test():
            self._end()
        return self._finish is None

    def is_success(self) -> bool:
        """Return `is_completed`: a communication that fails raises."""
        return self.is_completed()

    def wait(self, timeout: float | timedelta | None = None) -> bool:
        """Wait until the result is there, and return True.

        Raises
        ------
        DistBackendError
            The time limit, by default the group's, has passed; the message names who is missing.
        """
        if self._finish is not None:
            limit = None if timeout is None else seconds(timeout)
            self._group.wait(self._request, self._what, limit)
            self._end()
        return True
