"""A communicator of one process, for where there is no MPI: what is sent has arrived."""

from __future__ import annotations

from typing import Any

import numpy as np


class Done:
    """A request that is complete."""

    def Test(self) -> bool:
        """Return True."""
        return True


class Alone:
    """The calls of mpi4py's communicators that this room makes, for one process."""

    rank, size = 0, 1

    def Dup(self) -> Alone:
        """Return itself, for nothing can be mixed up."""
        return self

    def Idup(self) -> tuple[Alone, Done]:
        """Return itself."""
        return self, Done()

    def Free(self) -> None:
        """Do nothing."""

    def Iallreduce(self, sent: np.ndarray, received: np.ndarray, op: Any = None) -> Done:
        """Copy: a sum of one summand is the summand."""
        received[...] = sent
        return Done()

    def Ireduce(
        self, sent: np.ndarray, received: np.ndarray, op: Any = None, root: int = 0
    ) -> Done:
        """Copy."""
        return self.Iallreduce(sent, received)

    def Iallgather(self, sent: np.ndarray, received: np.ndarray) -> Done:
        """Copy."""
        return self.Iallreduce(sent, received)

    def Igather(self, sent: np.ndarray, received: np.ndarray, root: int = 0) -> Done:
        """Copy."""
        return self.Iallreduce(sent, received)

    def Iscatter(self, sent: np.ndarray, received: np.ndarray, root: int = 0) -> Done:
        """Copy."""
        return self.Iallreduce(sent, received)

    def Ibcast(self, buffer: np.ndarray, root: int = 0) -> Done:
        """Do nothing: the only process has it."""
        return Done()

    def Ibarrier(self) -> Done:
        """Do nothing."""
        return Done()
