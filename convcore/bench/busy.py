"""Benchmark on a busy machine: nets and small layers while other processes take the processors.

Each figure comes from a new worker process, because the system may place a process's threads well
or badly for as long as it lives; the slowest trial counts.  The load consists of processes that
this module starts: ``python -m convcore.bench.busy KIND SECONDS``.  They end after that time, and
when their parent process has ended.
"""

from __future__ import annotations

import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from convcore.bench import nets
from convcore.bench.peers import OURS, Peer, title
from convcore.bench.process import WorkerError, WorkerProcess
from convcore.bench.progress import Guess, Step

PEERS = ("torch", "onnxruntime")

SPINNING, TRAINING = "busy process", "training with convcore"
# Seconds that a process of the load lives at most.
LONGEST_LOAD = 600
# Seconds until a load has started, and that one trial measures.
START_SECONDS, TRIAL_SECONDS = 3.0, 1.0


@dataclass(frozen=True, slots=True)
class Load:
    """Other processes on the machine: their number and kind."""

    kind: str
    count: int

    def __str__(self) -> str:
        if not self.count:
            return "nothing"
        many = {SPINNING: "busy processes", TRAINING: "trainings with convcore"}
        return f"{self.count} {many[self.kind] if self.count > 1 else self.kind}"


QUIET = Load(SPINNING, 0)
LOADS = (QUIET, *(Load(SPINNING, n) for n in (1, 2, 4)), Load(TRAINING, 1), Load(TRAINING, 2))


@dataclass(frozen=True, slots=True)
class Workload:
    """A call that is timed, and the libraries besides convcore that can make it."""

    name: str
    build: Callable[[Peer, Path], Callable[[], Any]]
    peers: tuple[str, ...]


def _eager(net: str, task: str) -> Callable[[Peer, Path], Callable[[], Any]]:
    """Return the builder of a net that is called layer by layer, without optimisation."""

    def build(peer: Peer, folder: Path) -> Callable[[], Any]:
        library, description = peer.library, nets.own_net(net)
        model = nets.make_net(library, description)
        x = library.from_numpy(nets.pictures(description, task))
        model.train(task == nets.TRAIN)
        if task == nets.TRAIN:
            return nets.training_step(library, description, model, x)

        def run() -> Any:
            with library.no_grad():
                return model(x)

        return run

    return build


def _optimised(peer: Peer, folder: Path) -> Callable[[], Any]:
    net = nets.own_net("resnet18")
    weights, file = folder / "weights.npz", folder / "net.onnx"
    if peer.library is not None:
        nets.save_weights(nets.make_net(peer.library, net), weights)
        return nets.task_call(peer.library, net, nets.RUN_ONE, "contiguous", weights)
    import convcore

    nets.save_weights(nets.make_net(convcore, net), weights)
    nets.export(net, nets.RUN_ONE, weights, file)
    return peer.net_call(file, nets.pictures(net, nets.RUN_ONE))


def _small_convolutions(peer: Peer, folder: Path) -> Callable[[], Any]:
    library = peer.library
    net = library.nn.Sequential(*(library.nn.Conv2d(32, 32, 3, padding=1) for _ in range(20)))
    x = library.from_numpy(np.zeros((1, 32, 16, 16), np.float32))

    def run() -> Any:
        with library.no_grad():
            return net(x)

    return run


WORKLOADS = (
    Workload("ResNet-18 of one image", _eager("resnet18", nets.RUN_ONE), ("torch",)),
    Workload("ResNet-18 of one image, optimised", _optimised, ("onnxruntime",)),
    Workload("20 convolutions of 32 channels", _small_convolutions, ("torch",)),
    Workload("training step of LeNet", _eager("lenet", nets.TRAIN), ("torch",)),
    Workload("training step of ResNet-18", _eager("resnet18", nets.TRAIN), ("torch",)),
)


def workload_named(name: str) -> Workload:
    """Return the workload of that name."""
    return next(workload for workload in WORKLOADS if workload.name == name)


@dataclass
class Row:
    """Median milliseconds of every trial of a workload by one library, by load."""

    workload: str
    peer: str
    trials: dict[Load, list[float]] = field(default_factory=dict)
    failed: str = ""

    def worst(self, load: Load) -> float | None:
        """Return the slowest trial's median."""
        return max(self.trials[load]) if self.trials.get(load) else None

    def slowdown(self, load: Load) -> float | None:
        """Return the slowest trial beside a load over the slowest on the quiet machine."""
        quiet, loaded = self.worst(QUIET), self.worst(load)
        return loaded / quiet if quiet and loaded else None

    def as_data(self) -> dict[str, Any]:
        """Return the row for a JSON file."""
        trials = {str(load): medians for load, medians in self.trials.items()}
        return {
            "workload": self.workload,
            "library": self.peer,
            "milliseconds": trials,
            "failed": self.failed,
        }


@dataclass
class Effort(Guess):
    """Loads, workloads and libraries, each for so many trials: see `Guess`."""

    loads: Sequence[Load]
    peers: Sequence[str]
    trials: int

    def rows(self) -> list[Row]:
        """Return a row for each workload and library, still empty."""
        return [
            Row(workload.name, peer)
            for workload in WORKLOADS
            for peer in (OURS, *(peer for peer in self.peers if peer in workload.peers))
        ]

    @property
    def each(self) -> float:
        """About the seconds of one trial, its process included."""
        return nets.STARTING_SECONDS + TRIAL_SECONDS

    @property
    def whole(self) -> float:
        """Return about how many seconds all trials take; twice as many beside a load."""
        loaded = len(self.loads) * 2
        return len(self.rows()) * self.trials * loaded * self.each


@contextmanager
def running(load: Load, environment: Mapping[str, str]) -> Iterator[None]:
    """Context manager: run a load's processes, and kill them at the end, errors included."""
    with ExitStack() as stack:
        for _ in range(load.count):
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", __name__, load.kind.split()[0], str(LONGEST_LOAD)],
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                process_group=0,  # Ctrl-C is ours, and then kills them; as in WorkerProcess
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
        if load.count:
            time.sleep(START_SECONDS)
        yield


def measure(
    environment: Mapping[str, str], threads: int, effort: Effort, rows: list[Row]
) -> Iterator[Step]:
    """Time every row beside every load; yield progress, and fill ``rows`` as it goes.

    Parameters
    ----------
    environment : mapping
        The workers', for that many threads; the load's processes get it too.
    threads : int
    effort : Effort
    rows : list of Row
        What `Effort.rows` returned.

    Raises
    ------
    WorkerError
        Our own worker failed; a peer that fails is left out, and its row says why.
    """
    for load, trial in itertools.product(effort.loads, range(effort.trials)):
        with running(load, environment):
            for row in rows:
                name = f"{row.workload}, {title(row.peer)}"
                yield effort.step(
                    f"beside {load}: {name}, trial {trial + 1}",
                    effort.each * (2 if load.count else 1),
                )
                if row.failed:
                    continue
                try:
                    with (
                        tempfile.TemporaryDirectory() as folder,
                        WorkerProcess(row.peer, threads, environment) as worker,
                    ):
                        worker.ask("prepare_workload", name=row.workload, folder=folder)
                        times = worker.ask("time_for", seconds=TRIAL_SECONDS)
                except WorkerError as error:
                    if row.peer == OURS:
                        raise
                    row.failed = str(error)
                else:
                    row.trials.setdefault(load, []).append(statistics.median(times) * 1e3)


def spin(until: Callable[[], bool]) -> None:
    """Keep one processor busy until a condition holds."""
    while not until():
        sum(range(20_000))


def train(until: Callable[[], bool]) -> None:
    """Train a small net until a condition holds."""
    import convcore
    from convcore import nn

    net = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10),
    )  # fmt: skip
    optimizer = convcore.optim.SGD(net.parameters(), lr=1e-3)
    x, target = convcore.randn(8, 3, 64, 64), convcore.zeros(8, dtype=convcore.int64)
    while not until():
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), target).backward()
        optimizer.step()


def main() -> None:
    """Run one process of a load: ``busy`` or ``training``, and the seconds it may take."""
    kind, seconds = sys.argv[1:]
    parent, end = os.getppid(), time.monotonic() + float(seconds)
    work = {"busy": spin, "training": train}[kind]
    work(lambda: time.monotonic() > end or os.getppid() != parent)


if __name__ == "__main__":
    main()
