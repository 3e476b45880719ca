"""Have every library train and run every net, in turn, each in a process of its own."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from convcore.bench.cell import OURS
from convcore.bench.environment import worker_environment
from convcore.bench.nets.catalogue import TRAIN, Net
from convcore.bench.nets.worker import FORMATS, formats_of
from convcore.bench.pairing import Spread, paired_ratios, spread
from convcore.bench.process import WorkerError, WorkerProcess
from convcore.bench.runner import take_turns

PEERS = tuple(FORMATS)
# Outputs of one net in two libraries, over the largest: rounding, some fifty layers deep.
_TOLERANCE = 1e-3

# A library and the memory format of its tensors, empty where it chooses by itself.
Way = tuple[str, str]


@dataclass
class NetCell:
    """One net, one task: seconds, results and memory, by library and format."""

    net: Net
    task: str
    threads: int
    seconds: dict[Way, list[float]] = field(default_factory=dict)
    results: dict[Way, np.ndarray] = field(default_factory=dict)
    peak_bytes: dict[Way, int] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def best(self, peer: str) -> Way | None:
        """Return the way of a library whose median is least."""
        ways = [way for way in self.seconds if way[0] == peer]
        return min(ways, key=lambda way: spread(self.seconds[way]).median, default=None)

    def ratio(self, peer: str) -> Spread | None:
        """Return a peer's time over ours, each side's better format, round by round."""
        ours, theirs = self.best(OURS), self.best(peer)
        if ours is None or theirs is None:
            return None
        return spread(paired_ratios(self.seconds[ours], self.seconds[theirs]))

    def error(self) -> float:
        """Return how far results lie apart, over the largest element."""
        all_results = list(self.results.values())
        if not all_results:
            return math.nan
        first = all_results[0]
        scale = float(np.abs(first).max(initial=1e-30))
        return max(float(np.abs(other - first).max(initial=0)) for other in all_results) / scale

    @property
    def wrong(self) -> bool:
        """Whether a library computed something else."""
        # A training step draws what dropout leaves out: its loss is compared by the tests.
        return self.task != TRAIN and not self.error() <= _TOLERANCE


def measure(
    found: Mapping[str, str],
    nets: Sequence[Net],
    tasks: Sequence[str],
    peers: Sequence[str],
    threads: int,
    rounds: int,
    isa: str = "native",
    keep: bool = False,
    compiled: bool = False,
) -> Iterator[NetCell]:
    """Measure every task of every net; yield cells as they come.

    Parameters
    ----------
    found : mapping
        The environment that the workers' is made from; only read.
    nets, tasks : sequences of Net, and of names out of `catalogue.TASKS`
    peers : sequence of str
        Out of `PEERS`.  Those that read a file need PyTorch, which writes it.
    threads, rounds : int
    isa, keep
        As for `convcore.bench.environment.worker_environment`.
    compiled : bool
        Whether PyTorch also has its turns with ``torch.compile``, which takes a minute a net and
        a C++ compiler.

    Raises
    ------
    WorkerError
        Our own worker failed; a peer that fails is left out, and its cell says why.
    """
    environment = worker_environment(found, threads, isa, keep)
    for net in nets:
        with tempfile.TemporaryDirectory() as folder:
            weights = str(Path(folder, "weights.npz"))
            with WorkerProcess(OURS, threads, environment) as worker:
                worker.ask("save_net_weights", net=net.name, file=weights)
            for task in tasks:
                if task != TRAIN and "torch" in peers and len(peers) > 1:
                    _export(net, task, folder, threads, environment)
                yield _cell(net, task, peers, threads, rounds, folder, environment, compiled)


def _export(net: Net, task: str, folder: str, threads: int, environment: Mapping[str, str]) -> None:
    with WorkerProcess("torch", threads, environment) as worker:
        worker.ask(
            "export_net",
            net=net.name,
            task=task,
            weights=str(Path(folder, "weights.npz")),
            file=str(Path(folder, "net.onnx")),
        )


def _cell(
    net: Net,
    task: str,
    peers: Sequence[str],
    threads: int,
    rounds: int,
    folder: str,
    environment: Mapping[str, str],
    compiled: bool,
) -> NetCell:
    cell = NetCell(net, task, threads)
    with ExitStack() as stack:
        workers: dict[Way, WorkerProcess] = {}
        for peer in (OURS, *peers):
            for format in formats_of(peer, peer == OURS, task, compiled):
                worker = stack.enter_context(WorkerProcess(peer, threads, environment))
                try:
                    _prepare(cell, worker, (peer, format), folder)
                except WorkerError as error:
                    if peer == OURS:
                        raise
                    cell.failed[peer] = str(error)
                    break
                workers[peer, format] = worker
        timed = {way: (lambda w=worker: w.ask("time")) for way, worker in workers.items()}
        for way, seconds in take_turns(timed, dict.fromkeys(workers, rounds), rounds):
            cell.seconds.setdefault(way, []).append(seconds)
    return cell


def _prepare(cell: NetCell, worker: WorkerProcess, way: Way, folder: str) -> None:
    result = Path(folder, "result.npy")
    cell.peak_bytes[way] = worker.ask(
        "prepare_net",
        net=cell.net.name,
        task=cell.task,
        format=way[1],
        folder=folder,
        result=str(result),
    )
    cell.results[way] = np.load(result)
    worker.ask("calibrate")
