"""Who is asked what, in which order: exact results, then every cell checked and timed in turn."""

from __future__ import annotations

import itertools
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from convcore.bench.effort import Effort, Step, rounds_within
from convcore.bench.environment import worker_environment
from convcore.bench.layer import Layer
from convcore.bench.pairing import Spread, paired_ratios, spread
from convcore.bench.peers import ALLOWED_EPS
from convcore.bench.process import WorkerError, WorkerProcess
from convcore.bench.request import Request

OURS = "convcore"
# The oracle is NumPy in float64: its worker is the NumPy peer's, asked to solve.
_ORACLE = "numpy"


@dataclass
class Cell:
    """One layer, map, format and number of threads, and what was measured there, by peer."""

    layer: Layer
    map: str
    format: str
    threads: int
    errors: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return what identifies the cell, for people."""
        plural = "" if self.threads == 1 else "s"
        return f"{self.layer.name}, {self.map}, {self.format}, {self.threads} thread{plural}"

    @property
    def wrong(self) -> list[str]:
        """Peers whose result was off; convcore also if it gave none."""
        off = {peer for peer, error in self.errors.items() if not error <= ALLOWED_EPS[peer]}
        return sorted(off | ({OURS} & self.problems.keys()))

    @property
    def gflops(self) -> float:
        """Return convcore's speed in 1e9 operations a second: two a multiply-add, none left out."""
        if not self.seconds.get(OURS):
            return math.nan
        return 2e-9 * self.layer.geometry.multiply_adds / spread(self.seconds[OURS]).median

    def ratio(self, peer: str) -> Spread | None:
        """Return a peer's time over convcore's; None where either was not timed or not right."""
        timed = self.seconds.get(OURS) and self.seconds.get(peer)
        if not timed or {OURS, peer} & {*self.wrong, *self.problems}:
            return None
        return spread(paired_ratios(self.seconds[OURS], self.seconds[peer]))


@dataclass
class Outcome:
    """What a run has measured so far, and with what."""

    cells: list[Cell] = field(default_factory=list)
    workers: dict[str, Any] = field(default_factory=dict)
    """A worker's description, by ``peer@threads``."""
    finished: bool = False

    @property
    def wrong(self) -> list[Cell]:
        """Cells in which any result was wrong or missing."""
        return [cell for cell in self.cells if cell.wrong]


def run(
    request: Request, found: Mapping[str, str], outcome: Outcome, oracles: int = 1
) -> Iterator[Step]:
    """Measure; yield progress, and fill ``outcome`` as it comes.

    Parameters
    ----------
    request : Request
    found : mapping
        The environment that the workers' is made from; only read.
    outcome : Outcome
        Filled in place, so that an interrupted run leaves what was measured.
    oracles : int
        Processes in which exact results are computed, before anything is timed.

    Raises
    ------
    WorkerError
        If the oracle fails, or convcore's own worker does not start.
    """
    start_time = time.monotonic()
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="convcore-bench-")))

        def start(peer: str, threads: int) -> WorkerProcess:
            environment = worker_environment(found, threads, request.isa, request.keep)
            return stack.enter_context(WorkerProcess(peer, threads, environment))

        solvers = [start(_ORACLE, 1) for _ in range(min(oracles, len(request.layers)))]
        # All start now and import while the oracle works.
        names = (OURS, *request.peers)
        workers = {(p, t): start(p, t) for t, p in itertools.product(request.threads, names)}
        effort = Effort(request)
        yield effort.step("exact results", 0.0)
        for layer in _solve(request, solvers, root):
            yield effort.step(f"exact results: {layer.name}", effort.of_oracle(layer))
        for solver in solvers:
            solver.close()
        for (peer, threads), worker in workers.items():
            outcome.workers[f"{peer}@{threads}"] = _describe(worker)
        effort.mark(time.monotonic())
        for cell in _cells(request):
            yield effort.step(cell.name, 0.0)
            outcome.cells.append(cell)
            now = time.monotonic()
            left = None if request.budget is None else request.budget - (now - start_time)
            rounds = rounds_within(request.rounds, left, effort.ahead(now))
            folder = _folder(root, request, cell.layer)
            _measure(cell, request.peers, rounds, workers, outcome.workers, folder)
            yield effort.step(cell.name, effort.of_cell(cell.layer))
        outcome.finished = True


def _solve(request: Request, solvers: list[WorkerProcess], root: Path) -> Iterator[Layer]:
    """Let the oracles write every layer's problem, largest first; yield layers as they are done."""
    idle: SimpleQueue[WorkerProcess] = SimpleQueue()
    for solver in solvers:
        idle.put(solver)

    def solve(layer: Layer) -> Layer:
        folder = _folder(root, request, layer)
        folder.mkdir()
        solver = idle.get()
        try:
            solver.ask(
                "solve",
                layer=layer.spec,
                maps=request.maps,
                folder=str(folder),
                seed=request.seed + request.layers.index(layer),
            )
        finally:
            idle.put(solver)
        return layer

    largest_first = sorted(request.layers, key=lambda layer: -layer.geometry.multiply_adds)
    pool = ThreadPoolExecutor(len(solvers))
    try:
        yield from pool.map(solve, largest_first)
    finally:
        # After Ctrl-C the workers' processes are about to end, and with them what these wait for.
        pool.shutdown(wait=False, cancel_futures=True)


def _describe(worker: WorkerProcess) -> dict[str, Any]:
    """Return what a worker says it is made of; a peer that cannot even start computes nothing."""
    try:
        return worker.ask("describe")
    except WorkerError as error:
        if error.peer == OURS:
            raise
        loaded = {"problem": str(error)}
        return {"threads": worker.threads, "formats": [], "loaded": loaded, "variables": {}}


def _folder(root: Path, request: Request, layer: Layer) -> Path:
    return root / str(request.layers.index(layer))


def _cells(request: Request) -> Iterator[Cell]:
    for axes in itertools.product(request.layers, request.maps, request.formats, request.threads):
        yield Cell(*axes)


def _measure(
    cell: Cell,
    peers: tuple[str, ...],
    rounds: int,
    workers: Mapping[tuple[str, int], WorkerProcess],
    described: Mapping[str, Any],
    folder: Path,
) -> None:
    """Check every peer's result of a cell, then time them in turn, round by round."""
    about = {peer: described[f"{peer}@{cell.threads}"] for peer in (OURS, *peers)}
    ready: dict[str, WorkerProcess] = {}
    for peer in about:
        if cell.format not in about[peer]["formats"]:
            continue
        try:
            worker = workers[peer, cell.threads]
            cell.errors[peer] = _check(cell, worker, folder)
            worker.ask("calibrate")
            ready[peer] = worker
        except WorkerError as error:
            cell.problems[error.peer] = str(error)
    try:
        for worker in ready.values():
            worker.ask("settle")
        timed = {peer: partial(worker.ask, "time") for peer, worker in ready.items()}
        most_rounds = {peer: about[peer]["most_rounds"] for peer in ready}
        take_turns(timed, most_rounds, rounds, cell.seconds)
    except WorkerError as error:
        cell.problems[error.peer] = str(error)


def _check(cell: Cell, worker: WorkerProcess, folder: Path) -> float:
    """Return the error in eps of a worker's result."""
    return worker.ask(
        "prepare",
        layer=cell.layer.spec,
        folder=str(folder),
        map_name=cell.map,
        channels_last=cell.format == "channels_last",
    )


def take_turns(
    timed: Mapping[str, Callable[[], float]],
    most_rounds: Mapping[str, int],
    rounds: int,
    seconds: dict[str, list[float]],
) -> None:
    """Take samples in turn, A B C A B C ..., into ``seconds`` by name.

    A name sits out once it has had its ``most_rounds``.
    """
    for turn in range(rounds):
        for name, take in timed.items():
            if turn < most_rounds[name]:
                seconds.setdefault(name, []).append(take())
