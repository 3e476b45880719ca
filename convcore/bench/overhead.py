"""The suite of small operations: convcore beside PyTorch, on one thread, taking turns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from convcore.bench.cell import OURS
from convcore.bench.environment import worker_environment
from convcore.bench.operations import OPERATIONS, Operation
from convcore.bench.pairing import Spread, spread
from convcore.bench.process import WorkerProcess
from convcore.bench.runner import take_turns

# Peers that have the names the operations are written in.
PEERS = ("torch",)
# Two libraries' float32 results of one operation differ by rounding alone.
_TOLERANCE = 1e-4


@dataclass
class Cost:
    """What one operation cost, in seconds a call, by library."""

    operation: Operation
    seconds: dict[str, list[float]] = field(default_factory=dict)
    results: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def ours(self) -> Spread:
        """Return our seconds a call."""
        return spread(self.seconds[OURS])

    @property
    def wrong(self) -> bool:
        """Whether a peer computed something else."""
        ours = self.results[OURS]
        return any(
            ours.shape != theirs.shape or not np.allclose(ours, theirs, _TOLERANCE, _TOLERANCE)
            for theirs in self.results.values()
        )

    @property
    def kept(self) -> bool:
        """Whether the promise was kept, by the least of our samples: noise only ever adds."""
        limit = self.operation.limit
        return limit is None or 1e6 * min(self.seconds[OURS]) <= limit


def measure(
    found: Mapping[str, str],
    peers: tuple[str, ...],
    rounds: int,
    isa: str,
    keep: bool,
    described: dict[str, Any],
) -> Iterator[Cost]:
    """Time every operation in all libraries, in turn; yield costs as they come.

    Parameters
    ----------
    found : mapping
        The environment that the workers' is made from; only read.
    peers : tuple of str
        Out of `PEERS`.
    rounds : int
        Samples an operation.
    isa, keep
        As for `convcore.bench.environment.worker_environment`.
    described : dict
        Filled with what the workers are made of, by ``peer@threads``.

    Raises
    ------
    WorkerError
        An operation failed in a worker.
    """
    with ExitStack() as stack:
        workers = {
            peer: stack.enter_context(
                WorkerProcess(peer, 1, worker_environment(found, 1, isa, keep))
            )
            for peer in (OURS, *peers)
        }
        for peer, worker in workers.items():
            described[f"{peer}@1"] = worker.ask("describe")
        for one in OPERATIONS:
            cost = Cost(one)
            for peer, worker in workers.items():
                cost.results[peer] = np.asarray(worker.ask("operate", name=one.name))
                worker.ask("calibrate")
            timed = {peer: (lambda w=worker: w.ask("time")) for peer, worker in workers.items()}
            for peer, seconds in take_turns(timed, dict.fromkeys(workers, rounds), rounds):
                cost.seconds.setdefault(peer, []).append(seconds)
            yield cost
