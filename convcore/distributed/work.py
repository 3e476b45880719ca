"""Work: a communication that goes on, to be waited for; and ReduceOp, how values are combined."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, ClassVar

from convcore._tensor import Tensor
from convcore.distributed.group import ProcessGroup, seconds
from convcore.futures import Future


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

    # MPI uses their buffers until they are done, also of one that nobody waits for.
    _open: ClassVar[list[Work]] = []

    def __init__(
        self,
        group: ProcessGroup,
        what: str,
        request: Any,
        finish: Callable[[], None],
        results: Sequence[Tensor] = (),
    ):
        Work._open = [one for one in Work._open if one._goes_on()]
        Work._open.append(self)
        self._group = group
        self._what = what
        self._request = request
        self._finish: Callable[[], None] | None = finish
        self._results = list(results)
        self._future: Future | None = None

    def _goes_on(self) -> bool:
        if self._finish is None:
            return False
        # What failed has raised, here or where it was waited for; MPI may be at it still.
        return getattr(self._request, "failed", False) or not self._request.Test()

    def _end(self) -> None:
        if self._finish is None:
            return
        self._finish()  # raises again where it is asked again
        self._finish = None
        Work._open = [one for one in Work._open if one is not self]  # it keeps its tensors alive
        if self._future is not None:
            self._future.set_result(self._results)

    def get_future(self) -> Future[list[Tensor]]:
        """Return the future of the tensors that get the result; its `wait` is this one's."""
        if self._future is None:
            self._future = Future()
            self._future._sources = [self]
            if self._finish is None:
                self._future.set_result(self._results)
        return self._future

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
