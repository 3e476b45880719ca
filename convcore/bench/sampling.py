"""How long one call takes: how often to repeat it, and which of the times to believe.

A sample is the median over groups of back-to-back calls.  A group lasts at least a millisecond, so
that the clock's own cost (0.1 us) is nothing; a sample has as many groups as make five
milliseconds, so that one interruption by the system cannot move it.  A call that takes longer is a
group, and soon a sample, by itself: there the median over rounds does the same work.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

GROUP_SECONDS = 1e-3
SAMPLE_SECONDS = 5e-3

Call = Callable[[], object]
Clock = Callable[[], float]


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
