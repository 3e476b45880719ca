"""Faults of one rank end all: waits have a limit, and an error that nobody catches aborts.

A rank that waits for others polls.  When the limit has passed it tells every rank of its group
where it waits; those that wait too answer in the same way, and those that do not answer are the
ones that are missing: dead, stopped, or busy with something else.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from typing import Any

from convcore.distributed.monitor import Monitor, available

__all__ = ["DistBackendError"]

_ANSWER_TIME = 2.0  # seconds in which a rank that waits answers
_LOOK_EVERY = 0.1  # seconds between looks whether another rank has lost patience
_PRINTING_TIME = 0.3  # seconds in which the launcher prints what a rank wrote before it aborts
_TAG = 20


class Progress:
    """The optimisation step that this rank is at, as errors name it."""

    step = 0
    monitor: Monitor | None = None  # of this machine's ranks, once there are several

    @classmethod
    def advance(cls) -> None:
        """Count a step; DistributedDataParallel does."""
        cls.step += 1
        if cls.monitor is not None:
            cls.monitor.follow(cls.step)

    @classmethod
    def enter(cls, mpi: Any, comm: Any) -> None:
        """Have a monitor follow this rank; all ranks call this."""
        if cls.monitor is None and available():
            cls.monitor = Monitor(mpi, comm)
        if cls.monitor is not None:
            cls.monitor.follow(cls.step)

    @classmethod
    def leave(cls) -> None:
        """Say that this rank ends by itself."""
        if cls.monitor is not None:
            cls.monitor.leave()


class DistBackendError(RuntimeError):
    """A rank waited in vain: the message names it, the step, and the ranks that did not come."""


class Watch:
    """What the ranks of one group tell one another when one has waited too long.

    Parameters
    ----------
    comm : communicator of mpi4py
        Of its own, so that nothing else is received from it.
    """

    def __init__(self, comm: Any):
        self.comm = comm
        self.heard: dict[int, str] = {}

    def listen(self) -> bool:
        """Take what other ranks told; return whether any ever did."""
        while self.comm.Iprobe(tag=_TAG):
            from_rank, place = self.comm.recv(tag=_TAG)
            self.heard[from_rank] = place
        return bool(self.heard)

    def report(self, place: str) -> str:
        """Tell all others where this rank waits, and return who waits where and who does not."""
        others = [rank for rank in range(self.comm.size) if rank != self.comm.rank]
        self._sent = [self.comm.isend((self.comm.rank, place), rank, _TAG) for rank in others]
        end = time.monotonic() + _ANSWER_TIME
        while time.monotonic() < end and len(self.heard) < len(others):
            self.listen()
            time.sleep(0.01)
        lines = [f"rank {self.comm.rank} waits in {place}"]
        lines += [f"rank {rank} waits in {self.heard[rank]}" for rank in sorted(self.heard)]
        missing = [rank for rank in others if rank not in self.heard]
        lines += [f"rank {rank} does not answer: it died, hangs or is late" for rank in missing]
        return "; ".join(lines)


def wait(request: Any, what: str, watch: Watch | None, limit: float) -> None:
    """Wait for a request of MPI, giving other processes the core meanwhile.

    Raises
    ------
    DistBackendError
        It took longer than ``limit`` seconds, here or at another rank of the group.
    """
    start = looked = time.monotonic()
    polls = 0
    while not request.Test():
        polls += 1
        time.sleep(0 if polls < 100 else 2e-4)
        now = time.monotonic()
        if watch is None or now - looked < _LOOK_EVERY:
            continue
        looked = now
        late = now - start > limit
        if late or watch.listen():
            place = f"{what} at step {Progress.step}"
            cause = f"for more than {limit:g} s" if late else "which another rank gave up"
            raise DistBackendError(f"waited {cause}: {watch.report(place)}")


def abort_on_error(mpi: Any) -> Any:
    """Have an error that nobody catches end all ranks; return the hook that was there before."""
    before, own = sys.excepthook, os.getpid()

    def end_all(kind: type[BaseException], error: BaseException, trace: Any) -> None:
        if os.getpid() != own:  # a fork's
            before(kind, error, trace)
            return
        Progress.leave()
        rank = mpi.COMM_WORLD.rank
        traceback.print_exception(kind, error, trace)
        print(
            f"convcore: rank {rank} raised at step {Progress.step}: {kind.__name__}: {error}; "
            "all ranks end",
            file=sys.stderr,
            flush=True,
        )
        time.sleep(_PRINTING_TIME)
        mpi.COMM_WORLD.Abort(1)

    sys.excepthook = end_all
    return before
