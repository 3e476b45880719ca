"""Whether all ranks of a group begin the same collective, which MPI takes for granted.

MPI says nothing of ranks that call different collectives, or one with different sizes: it may hang,
crash, or mix up their numbers. Each rank tells the others in a line what it begins, by a
communicator of its own; where two differ, all ranks get an error that has both.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore.distributed import faults

_LINE_BYTES = 96  # what is longer is compared up to there


class Agreement:
    """A request of a collective, complete when all ranks have begun the same and it is done.

    Parameters
    ----------
    comm : communicator of mpi4py
        Of lines alone.
    ranks : list of int
        The members, by their ranks among all processes.
    line : str
        What this rank begins.
    request : request of mpi4py
    """

    def __init__(self, comm: Any, ranks: list[int], line: str, request: Any):
        own = np.frombuffer(line.encode().ljust(_LINE_BYTES, b"\0")[:_LINE_BYTES], np.uint8)
        self._lines = np.empty((comm.size, _LINE_BYTES), np.uint8)
        self._told = comm.Iallgather(own, self._lines)
        self._ranks = ranks
        self._request = request
        self.begun_by_all = self.failed = False

    def Test(self) -> bool:
        """Return whether the collective is done.

        Raises
        ------
        DistBackendError
            Another rank began something else.
        """
        if not self.begun_by_all:
            if not self._told.Test():
                return False
            self._compare()
            self.begun_by_all = True
        return self._request.Test()

    def _compare(self) -> None:
        differs = (self._lines != self._lines[0]).any(1)
        if differs.any():
            self.failed = True
            said = [self._said(0), self._said(int(differs.argmax()))]
            raise faults.DistBackendError(
                f"ranks call different collectives at step {faults.Progress.step}: "
                + "; ".join(said)
            )

    def _said(self, place: int) -> str:
        line = self._lines[place].tobytes().rstrip(b"\0").decode(errors="replace")
        return f"rank {self._ranks[place]} began {line}"
