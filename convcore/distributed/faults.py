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
from functools import partial
from typing import Any

from convcore.distributed.monitor import Monitor, available

_ANSWER_TIME = 2.0  # seconds in which a rank that waits answers
_YIELDING_TIME = 0.002  # seconds of a wait in which a rank asks MPI again and again
_SLEEP = 2e-4  # seconds between asking later
_LOOK_EVERY = 0.1  # seconds between looks whether another rank has lost patience, or left
_LEAVING_TIME = 2.0  # seconds in which what a rank sent before it left arrives
_PRINTING_TIME = 0.3  # seconds in which the launcher prints what a rank wrote before it aborts
_TAG = 20
# Not sleep(0) where there is another way: on Linux it takes 50 us and more, yielding less than 1:
# python -m timeit -s "import os, time" "time.sleep(0)", and the same of "os.sched_yield()".
_give_way = getattr(os, "sched_yield", partial(time.sleep, 0))
_abandoned: list[Any] = []  # requests whose wait failed: MPI may still write to their buffers


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
    def leave(cls, with_all: bool = False) -> None:
        """Say that this rank ends by itself, or that it ends all."""
        if cls.monitor is not None:
            cls.monitor.leave(with_all)

    @classmethod
    def left(cls) -> dict[int, int]:
        """Return the ranks of this machine that ended by themselves, and at which step."""
        return {} if cls.monitor is None else cls.monitor.left()


class DistBackendError(RuntimeError):
    """A rank waited in vain: the message names it, the step, and the ranks that did not come."""


class Watch:
    """What the ranks of one group tell one another when one has waited too long.

    Parameters
    ----------
    comm : communicator of mpi4py
        Of its own, so that nothing else is received from it.
    ranks : list of int
        The members, by their ranks among all processes.
    """

    def __init__(self, comm: Any, ranks: list[int]):
        self.comm = comm
        self.ranks = ranks
        self.heard: dict[int, str] = {}
        self._seen_leaving: dict[int, float] = {}

    def listen(self) -> bool:
        """Take what other ranks told; return whether any ever did."""
        while self.comm.Iprobe(tag=_TAG):
            from_rank, place = self.comm.recv(tag=_TAG)
            self.heard[from_rank] = place
        return bool(self.heard)

    def left(self, partners: set[int] | None) -> bool:
        """Return whether a member left so long ago that nothing more comes from it.

        Of a message's partners, by their ranks among all processes, all have to have left.
        """
        now = time.monotonic()
        seen = {rank: self._seen_leaving.setdefault(rank, now) for rank in Progress.left()}
        gone = {rank for rank, since in seen.items() if now - since > _LEAVING_TIME}
        return bool(gone.intersection(self.ranks)) if partners is None else partners <= gone

    def report(self, place: str) -> str:
        """Tell all others where this rank waits, and return who waits where and who does not."""
        left = Progress.left()
        others = [one for one, rank in enumerate(self.ranks) if rank not in left]
        others.remove(self.comm.rank)
        self._sent = [self.comm.isend((self.comm.rank, place), one, _TAG) for one in others]
        end = time.monotonic() + _ANSWER_TIME
        while time.monotonic() < end and not self.heard.keys() >= set(others):
            self.listen()
            time.sleep(0.01)
        heard = {one: f"waits in {self.heard[one]}" for one in sorted(self.heard)}
        missing = dict.fromkeys(others, "does not answer: it died, hangs or is late")
        lines = {self.comm.rank: f"waits in {place}"} | heard | (missing | heard)
        said = [f"rank {self.ranks[one]} {line}" for one, line in lines.items()]
        said += [f"rank {r} left at step {step}" for r, step in left.items() if r in self.ranks]
        return "; ".join(said)


def wait(request: Any, what: str, watch: Watch | None, limit: float) -> None:
    """Wait for a request of MPI, giving other processes the core meanwhile.

    Raises
    ------
    DistBackendError
        It took longer than ``limit`` seconds, here or at another rank of the group; or a rank that
        has not begun it left, of a message all that it may come from or goes to.
    """
    try:
        _wait(request, what, watch, limit)
    except BaseException:
        _abandoned.append(request)
        raise


def _wait(request: Any, what: str, watch: Watch | None, limit: float) -> None:
    start = looked = time.monotonic()
    while not request.Test():
        now = time.monotonic()
        if now - start < _YIELDING_TIME:
            _give_way()
            continue
        time.sleep(_SLEEP)
        if now - looked < _LOOK_EVERY:
            continue
        looked = now
        place = f"{what} at step {Progress.step}"
        if now - start > limit:
            cause = f"for more than {limit:g} s"
        elif watch is not None and watch.listen():
            cause = "until another rank gave up"
        elif (
            watch is not None
            and not getattr(request, "begun_by_all", False)
            and watch.left(getattr(request, "partners", None))
        ):
            cause = "for a rank that left"
        else:
            continue
        raise DistBackendError(f"waited {cause}: {watch.report(place) if watch else place}")


def abort_on_error(mpi: Any) -> Any:
    """Have an error that nobody catches end all ranks; return the hook that was there before."""
    before, own = sys.excepthook, os.getpid()

    def end_all(kind: type[BaseException], error: BaseException, trace: Any) -> None:
        if os.getpid() != own:  # a fork's
            before(kind, error, trace)
            return
        Progress.leave(with_all=True)
        traceback.print_exception(kind, error, trace)
        says = f"raised at step {Progress.step}: {kind.__name__}: {error}"
        if issubclass(kind, KeyboardInterrupt):
            says = f"was interrupted at step {Progress.step}"
        text = f"convcore: rank {mpi.COMM_WORLD.rank} {says}; all ranks end"
        print(text, file=sys.stderr, flush=True)
        time.sleep(_PRINTING_TIME)
        mpi.COMM_WORLD.Abort(1)

    sys.excepthook = end_all
    return before
