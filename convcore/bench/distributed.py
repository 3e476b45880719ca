"""Benchmark of data-parallel training: ranks beside threads of one process, in turn.

Each rank learns from a batch of its own; one process of as many threads learns from all of these
batches at once. Every setup has processes of its own (`convcore.bench.rank`); several ranks are
started by mpiexec, and are timed with their gradients averaged and without.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from convcore.bench.measuring import take_turns
from convcore.bench.nets import SECONDS_A_MULTIPLY_ADD, STARTING_SECONDS, Net, own_net
from convcore.bench.network import NETWORKS, RANKS, Estimate, Schedule, estimate
from convcore.bench.peers import OURS
from convcore.bench.process import WorkerProcess
from convcore.bench.progress import Guess, Step

DEFAULT_NETS = ("resnet18", "mobilenet_v2", "lenet")
# A sample takes about so long, or one step.
_SAMPLE_SECONDS = 0.3


@dataclass(frozen=True, slots=True)
class Setup:
    """Processes that train together, threads of each, and batches that each learns from at once."""

    ranks: int
    threads: int
    batches: int = 1

    @property
    def parts(self) -> int:
        """Batches in a step, over all ranks."""
        return self.ranks * self.batches


def setups(ranks: Sequence[int], threads: int) -> list[Setup]:
    """Return one rank, the numbers of ranks, and beside each one process of as many threads."""
    found = [Setup(1, threads)]
    for count in ranks:
        found += Setup(count, threads), Setup(1, count * threads, count)
    return list(dict.fromkeys(found))


@dataclass
class Run:
    """What was measured of a net in a setup: seconds, of each round."""

    net: Net
    setup: Setup
    seconds: list[float] = field(default_factory=list)
    """Of a step."""
    computing: list[float] = field(default_factory=list)
    """Of a step without communication; there is none for one rank."""
    overlap: float | None = None
    """Part of the gradients' bytes that were reduced when the backward pass had ended."""
    buckets: list[int] = field(default_factory=list)
    """Bytes that are reduced at once."""
    schedule: Schedule | None = None
    """When gradients are there; of one rank with one batch."""

    @property
    def step(self) -> float:
        """Seconds of a step, in the best round: other programs only ever take time."""
        return min(self.seconds)

    @property
    def images(self) -> float:
        """Images of a second, in all ranks together."""
        return self.setup.parts * self.net.batch / self.step

    @property
    def exposed(self) -> float:
        """Seconds by which communication makes a step longer."""
        return max(0.0, self.step - min(self.computing)) if self.computing else 0.0

    def efficiency(self, one: Run) -> float:
        """Return images of a second over those of as many times one rank."""
        return self.images / (self.setup.parts * one.images)

    def ceiling(self, one: Run) -> float | None:
        """Return `efficiency` without communication, which the machine's shared parts limit."""
        return one.step / min(self.computing) if self.computing else None

    def as_data(self) -> dict[str, Any]:
        """Return the run for a JSON file."""
        setup = self.setup
        return {
            "net": self.net.name, "ranks": setup.ranks, "threads": setup.threads,
            "images": setup.parts * self.net.batch, "seconds": self.seconds,
            "seconds_without_communication": self.computing, "overlap": self.overlap,
            "bucket_bytes": self.buckets,
        }  # fmt: skip


def of_net(runs: Sequence[Run], net: Net, setup: Setup) -> Run | None:
    """Return the run of a net in a setup, if it is there."""
    return next((run for run in runs if run.net is net and run.setup == setup), None)


def beside_threads(run: Run, runs: Sequence[Run]) -> float | None:
    """Return the speed of ranks over that of one process of as many threads; None for one rank."""
    ranks, threads = run.setup.ranks, run.setup.threads
    if ranks == 1:
        return None
    other = of_net(runs, run.net, Setup(1, ranks * threads, ranks))
    return run.images / other.images if other is not None and other.seconds else None


def on_paper(run: Run, ranks: int = RANKS) -> list[Estimate]:
    """Return the step of many ranks like this one, on each network."""
    assert run.schedule is not None, "of one rank with one batch"
    schedule = run.schedule.lasting(run.step)
    return [estimate(schedule, ranks, network) for network in NETWORKS]


def find_mpiexec() -> str | None:
    """Return the launcher beside this Python, as wheels install it, or on PATH."""
    beside = shutil.which("mpiexec", path=str(Path(sys.executable).parent))
    return beside or shutil.which("mpiexec")


def start(setup: Setup, environment: Mapping[str, str]) -> WorkerProcess:
    """Start the processes of a setup; one rank needs no MPI."""
    launcher: tuple[str, ...] = ()
    if setup.ranks > 1:
        launcher = (find_mpiexec() or "mpiexec", "-n", str(setup.ranks))
    return WorkerProcess(OURS, setup.threads, environment, "convcore.bench.rank", launcher)


@dataclass
class Effort(Guess):
    """Nets and setups, each so many rounds: see `Guess`."""

    nets: Sequence[Net]
    setups: Sequence[Setup]
    rounds: int

    @property
    def whole(self) -> float:
        """Return about how many seconds all nets take."""
        return sum(self.of_start(net) + self.rounds * self.of_round(net) for net in self.nets)

    def of_start(self, net: Net) -> float:
        """About seconds: processes start, make the net, and take a few steps."""
        return len(self.setups) * (STARTING_SECONDS + 4 * self.of_step(net))

    def of_round(self, net: Net) -> float:
        """About seconds of a sample of each setup, of several ranks two."""
        samples = sum(1 if setup.ranks == 1 else 2 for setup in self.setups)
        return samples * max(_SAMPLE_SECONDS, self.of_step(net))

    def of_step(self, net: Net) -> float:
        """About seconds of a step of one batch on a thread of its own."""
        return SECONDS_A_MULTIPLY_ADD * net.multiply_adds * net.batch


def measure(
    environment: Callable[[int], Mapping[str, str]], effort: Effort, runs: list[Run]
) -> Iterator[Step]:
    """Measure every net in every setup; yield progress, and fill ``runs`` net by net.

    Parameters
    ----------
    environment : callable
        Returns that of a process of so many threads.
    effort : Effort
    runs : list of Run

    Raises
    ------
    WorkerError
        Processes failed, or could not be started.
    """
    for net in effort.nets:
        found = [Run(net, setup) for setup in effort.setups]
        with ExitStack() as stack:
            yield effort.step(f"{net.name}: starting", effort.of_start(net))
            workers = {
                run.setup: stack.enter_context(start(run.setup, environment(run.setup.threads)))
                for run in found
            }
            yield from _measure(found, workers, effort)
        runs += found


def _measure(
    runs: Sequence[Run], workers: Mapping[Setup, WorkerProcess], effort: Effort
) -> Iterator[Step]:
    timed: dict[str, Callable[[], float]] = {}
    samples: dict[str, list[float]] = {}
    for run in runs:
        _prepare(run, workers[run.setup], timed, samples)
    share = effort.of_round(runs[0].net) / len(timed)
    for name, seconds in take_turns(timed, dict.fromkeys(timed, effort.rounds), effort.rounds):
        samples[name].append(seconds)
        yield effort.step(f"timed {name}", share)


def _prepare(
    run: Run,
    worker: WorkerProcess,
    timed: dict[str, Callable[[], float]],
    samples: dict[str, list[float]],
) -> None:
    """Have a setup ready, and add what is timed of it under names, with where samples go."""
    net, setup = run.net.function, run.setup
    name = f"{run.net.name}, {setup.ranks} x {setup.threads}"
    seconds = worker.ask("prepare", net=net, batches=setup.batches)
    steps = max(1, round(_SAMPLE_SECONDS / seconds))
    timed[name] = partial(worker.ask, "time", steps=steps)
    samples[name] = run.seconds
    if setup.ranks == 1:
        if setup.batches == 1:
            run.schedule = Schedule(**worker.ask("schedule", net=net))
        return
    run.buckets, run.overlap = worker.ask("buckets"), worker.ask("overlap")
    timed[f"{name}, alone"] = partial(worker.ask, "time", steps=steps, reduce=False)
    samples[f"{name}, alone"] = run.computing


def nets_named(names: Sequence[str]) -> list[Net]:
    """Return nets by name, those of the default where there is no name.

    Raises
    ------
    ValueError
        There is no such net.
    """
    return [own_net(name) for name in names or DEFAULT_NETS]
