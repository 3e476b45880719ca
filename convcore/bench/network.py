"""A model of data-parallel training on a network: steps of many ranks, from one rank's times.

A message of n bytes takes latency + n / bandwidth (the alpha-beta model), and its sum with what is
there a time for each byte that is measured. Gradients are reduced bucket by bucket on a ring: each
rank sends 2 (p - 1) messages of 1 / p of a bucket, and adds p - 1 of them. A bucket's reduction
begins when its last gradient is there and the one before has ended, beside the backward pass.

References
----------
P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
Journal of Parallel and Distributed Computing 69 (2009).
R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations in
MPICH", International Journal of High Performance Computing Applications 19 (2005).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

RANKS = 64
_SIZE_BYTES = 8  # of the number of its images that each rank tells all others


@dataclass(frozen=True, slots=True)
class Network:
    """A network: each rank has a link of its own, full duplex."""

    gigabits: float
    """Of a second, in each direction."""
    latency: float = 20e-6
    """Seconds of a message without bytes; about that of TCP inside a data centre."""

    def message(self, count: float) -> float:
        """Return the seconds of a message of some bytes."""
        return self.latency + 8e-9 * count / self.gigabits


NETWORKS = (Network(10), Network(100))


@dataclass(frozen=True, slots=True)
class Schedule:
    """What a rank does in a step, in seconds from its start, without any communication."""

    step: float
    backward: float
    """When the backward pass has ended, and the optimizer begins."""
    buckets: Sequence[tuple[int, float]]
    """Bytes, and when the last of its gradients is there; in the order in which they are sent."""
    buffers: int
    """Bytes that the first rank sends to all before the forward pass."""
    add: float
    """Of adding a byte that came to one that is there."""

    def lasting(self, step: float) -> Schedule:
        """Return the schedule of a step of other length, everything in proportion."""
        factor = step / self.step
        buckets = [(count, factor * ready) for count, ready in self.buckets]
        return replace(self, step=step, backward=factor * self.backward, buckets=buckets)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A step on paper, in seconds."""

    ranks: int
    network: Network
    step: float
    sending: float
    """All that is sent, one after the other."""
    added: float
    """By how much communication makes the step longer."""

    @property
    def efficiency(self) -> float:
        """Return the images of a second over those of as many ranks that never communicate."""
        return 1 - self.added / self.step

    @property
    def overlap(self) -> float:
        """Return the part of the communication that the step does not wait for."""
        return max(0.0, 1 - self.added / self.sending) if self.sending else 1.0


def ring_all_reduce(count: float, ranks: int, network: Network, add: float = 0.0) -> float:
    """Return the seconds of summing ``count`` bytes of each rank, where each gets the sum."""
    part = count / ranks
    return (ranks - 1) * (2 * network.message(part) + add * part)


def preparation(schedule: Schedule, ranks: int, network: Network) -> float:
    """Return the seconds of what comes before a forward pass.

    The sizes of all batches are gathered in a ring's place by doubling, and buffers are sent down a
    binomial tree.
    """
    turns = math.ceil(math.log2(ranks))
    sizes = turns * network.latency + (network.message(_SIZE_BYTES * (ranks - 1)) - network.latency)
    return sizes + (turns * network.message(schedule.buffers) if schedule.buffers else 0.0)


def estimate(schedule: Schedule, ranks: int, network: Network) -> Estimate:
    """Return a step of so many ranks on a network."""
    if ranks == 1:
        return Estimate(1, network, schedule.step, 0.0, 0.0)
    before = preparation(schedule, ranks, network)
    sending, end = before, 0.0
    for count, ready in schedule.buckets:
        seconds = ring_all_reduce(count, ranks, network, schedule.add)
        end = max(end, ready) + seconds
        sending += seconds
    added = before + max(0.0, end - schedule.backward)
    return Estimate(ranks, network, schedule.step + added, sending, added)


def assumptions(ranks: int = RANKS) -> Iterator[str]:
    """Yield what the model takes for granted, a sentence each."""
    latency = 1e6 * NETWORKS[0].latency
    yield f"{ranks} ranks, each on a machine of its own, that computes as one rank did here, alone."
    yield (
        f"A message takes {latency:g} us and its bytes over the link's speed; links are full "
        "duplex, and the switch never holds them up."
    )
    yield (
        "Buckets are summed on a ring, one after the other, while the backward pass goes on, which "
        "loses nothing by it; adding takes what was measured here."
    )
    yield "No rank is ever late: noise, stragglers, loading and evaluation are left out."
    yield "Source: Patarasuk and Yuan 2009 (the ring); Thakur, Rabenseifner and Gropp 2005 (trees)."
