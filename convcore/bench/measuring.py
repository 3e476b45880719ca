"""Timing of calls in turn, paired ratios, quartiles, and peak memory.

A sample is the median over groups of back-to-back calls.  A group lasts at least a millisecond, so
that the clock's own cost (0.1 us) is nothing; a sample has as many groups as make five
milliseconds, so that one interruption by the system cannot move it.  A call that takes longer is a
group, and soon a sample, by itself: there the median over rounds does the same work.

Samples of several libraries are taken in turn.  Noise that lasts longer than a round slows both
samples of a pair and leaves their ratio alone.
"""

from __future__ import annotations

import itertools
import math
import re
import statistics
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import threadpoolctl

GROUP_SECONDS = 1e-3
SAMPLE_SECONDS = 5e-3

# Waiting for a process's other threads.  Elsewhere than on Linux a running thread's CPU time is
# added up at the system's tick, every 4 to 16 ms: a shorter look would miss one that spins.
PATIENCE_SECONDS = 0.5
_POLL_SECONDS = 1e-3
_LOOK_SECONDS = 0.02
_TASKS = Path("/proc/self/task")

_STATUS = Path("/proc/self/status")
_FORGET = Path("/proc/self/clear_refs")

# Of the matrix product that tells the machine's peak.  Long enough for several products; the best
# counts, because noise only ever takes away.
_PEAK_SIZE = 2048
_PEAK_SECONDS = 0.4

Call = Callable[[], object]
Clock = Callable[[], float]
Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Sampling:
    """A sample's extent: groups, and calls a group."""

    groups: int
    calls: int


def calibrate(call: Call, clock: Clock = time.perf_counter) -> Sampling:
    """Return how often to repeat a call that has been made once before, so that all is warm."""
    calls = 1
    while (seconds := _group(call, calls, clock)) < GROUP_SECONDS:
        # Aim a fifth beyond, never by more than tenfold: a first short time may be mere luck.
        wanted = int(1.2 * calls * GROUP_SECONDS / max(seconds, 1e-9))
        calls = max(calls + 1, min(10 * calls, wanted))
    return Sampling(max(1, min(5, round(SAMPLE_SECONDS / seconds))), calls)


def sample(call: Call, sampling: Sampling, clock: Clock = time.perf_counter) -> float:
    """Return seconds a call: the median over the groups of a sample.

    Short calls are called once untimed first, because another process has had the caches since; in
    a program's own loop they would be warm.
    """
    if sampling.groups > 1:
        call()
    groups = [_group(call, sampling.calls, clock) for _ in range(sampling.groups)]
    return statistics.median(groups) / sampling.calls


def _group(call: Call, calls: int, clock: Clock) -> float:
    start = clock()
    for _ in range(calls):
        call()
    return clock() - start


def take_turns(
    timed: Mapping[Name, Callable[[], float]], most_rounds: Mapping[Name, int], rounds: int
) -> Iterator[tuple[Name, float]]:
    """Take samples in turn, A B C A B C ...; yield each with its name as it comes.

    A name sits out once it has had its ``most_rounds``.
    """
    for turn, name in itertools.product(range(rounds), timed):
        if turn < most_rounds[name]:
            yield name, timed[name]()


@dataclass(frozen=True, slots=True)
class Quartiles:
    """Median and quartiles of some samples."""

    median: float
    low: float
    high: float


def quartiles(samples: Sequence[float]) -> Quartiles:
    """Return the median and the quartiles (inclusive method); one sample is its own three."""
    if not samples:
        raise ValueError("samples must not be empty")
    if len(samples) == 1:
        return Quartiles(samples[0], samples[0], samples[0])
    low, median, high = statistics.quantiles(samples, n=4, method="inclusive")
    return Quartiles(median, low, high)


def paired_ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Return theirs / ours, round by round: above 1, ours is the faster.

    A peer may have sat out the later rounds; those have no ratio.  Noise that lasts longer than a
    round slows both samples of a pair and leaves their ratio alone: that is what pairing is for.
    """
    if len(theirs) > len(ours):
        raise ValueError(f"theirs has {len(theirs)} rounds, more than ours, {len(ours)}")
    return [b / a for a, b in zip(ours, theirs, strict=False)]


def geometric_mean(ratios: Iterable[float]) -> float:
    """Return exp(mean(log(ratio))); nan for none."""
    logarithms = [math.log(ratio) for ratio in ratios]
    return math.exp(math.fsum(logarithms) / len(logarithms)) if logarithms else math.nan


def settle(
    clock: Clock = time.monotonic,
    cpu_clock: Clock = time.process_time,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Sleep until no other thread of this process runs, or patience ends.

    After a parallel region, threads of OpenMP and BLAS spin for a while in case there is more to
    do: those of GNU's OpenMP for some 10 ms, of Intel's for 200 ms.  A peer timed meanwhile would
    share its CPUs with them.
    """
    deadline = clock() + PATIENCE_SECONDS
    on_linux = _TASKS.exists()
    while not (_all_sleep() if on_linux else _used_no_time(cpu_clock, sleep)):
        if clock() >= deadline:
            return
        sleep(_POLL_SECONDS)


def _all_sleep() -> bool:
    """Return whether all other threads are asleep, by the state that Linux shows."""
    own = str(threading.get_native_id())
    return not any(_runs(task) for task in _TASKS.iterdir() if task.name != own)


def _runs(task: Path) -> bool:
    try:
        # pid (name) state ...; a name may hold anything, brackets too.
        return (task / "stat").read_text().rpartition(") ")[2].startswith("R")
    except OSError:
        return False  # ended meanwhile


def _used_no_time(cpu_clock: Clock, sleep: Callable[[float], None]) -> bool:
    """Return whether this process used next to no CPU time while we slept."""
    before = cpu_clock()
    sleep(_LOOK_SECONDS)
    return cpu_clock() - before < _LOOK_SECONDS / 10


class PeakMemory:
    """The most memory held above what was held when this was made, in bytes.

    Linux keeps a process's present resident size in VmRSS and its largest in VmHWM, and forgets the
    largest when 5 is written to clear_refs (proc(5)).  Elsewhere only the largest ever is known: it
    stands in for both.  Pages of files do not count where Linux tells them apart (RssFile): they
    are a library's code, read when it is first needed, and no memory that the work takes.
    """

    def __init__(self) -> None:
        self.forget()
        self._before, self._code = _resident("VmRSS"), _of_files()

    def forget(self) -> None:
        """Leave out what was held until now and no longer is."""
        with suppress(OSError):
            _FORGET.write_text("5")

    @property
    def added(self) -> int:
        """Return the most bytes above the beginning, so far."""
        code = max(0, _of_files() - self._code)
        return max(0, _resident("VmHWM") - self._before - code)


def _resident(field: str) -> int:
    known = _proc_status(field)
    return _largest_ever() if known is None else known


def _of_files() -> int:
    return _proc_status("RssFile") or 0


def _proc_status(field: str) -> int | None:
    """Return the bytes that Linux reports in a field, or None elsewhere."""
    try:
        found = re.search(field + r":\s+(\d+) kB", _STATUS.read_text())
    except OSError:
        return None
    return int(found[1]) << 10 if found else None


def _largest_ever() -> int:
    try:
        import resource  # not on Windows
    except ImportError:
        return 0
    scale = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale


def gemm_gflops(dtype: str, threads: int, size: int = _PEAK_SIZE) -> float:
    """Return SciPy's speed of a square matrix product, best of several, in 1e9 operations a second.

    Direct convolution is a matrix product in disguise and cannot be faster than the best one.
    Winograd can: it does fewer multiplications than the definition, by which speed is counted.

    Parameters
    ----------
    dtype : {'float32', 'float64'}
    threads : int
        How many BLAS computes with.
    size : int
        Rows and columns of each matrix.
    """
    from scipy.linalg import blas

    product: Callable[..., Any] = {"float32": blas.sgemm, "float64": blas.dgemm}[dtype]
    generator = np.random.default_rng(0)
    a, b = (np.asfortranarray(generator.standard_normal((size, size)), dtype) for _ in range(2))
    with threadpoolctl.threadpool_limits(threads, user_api="blas"):
        seconds = _best(lambda: product(1.0, a, b))
    return 2e-9 * size**3 / seconds


def _best(call: Callable[[], Any]) -> float:
    call()
    times: list[float] = []
    while sum(times) < _PEAK_SECONDS:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)
