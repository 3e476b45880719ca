"""Run a benchmark: start the workers, check their results, time them in turn, yield progress.

Exact results are computed first; then every cell is checked and timed.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from convcore.bench.layers import Layer
from convcore.bench.measuring import take_turns
from convcore.bench.peers import OURS
from convcore.bench.process import WorkerError, WorkerProcess, worker_environment
from convcore.bench.progress import Step
from convcore.bench.results import Cell, Outcome, Request, counted

# The oracle is NumPy in float64: its worker is the NumPy peer's, asked to solve and to judge.
_ORACLE = "numpy"
# A median of fewer rounds is none.
LEAST_ROUNDS = 3

Workers = Mapping[tuple[str, int], WorkerProcess]


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
        rulers = {threads: start(_ORACLE, threads) for threads in request.threads}
        names = (OURS, *request.peers)
        workers = {(p, t): start(p, t) for t, p in itertools.product(request.threads, names)}
        effort = Effort(request)
        yield effort.step("exact results", 0.0)
        for layer in _solve(request, solvers, root):
            yield effort.step(f"exact results: {layer.name}", effort.of_oracle(layer))
        judge = solvers[0]
        for solver in solvers[1:]:
            solver.close()
        for (peer, threads), worker in workers.items():
            outcome.workers[f"{peer}@{threads}"] = _describe(worker, request)
        yield effort.step("the speed of a large matrix product", 0.0)
        for threads, ruler in rulers.items():
            outcome.peaks[threads] = ruler.ask("measure_peak", dtypes=request.dtypes)
            ruler.close()
        effort.mark(time.monotonic())
        for layer, pass_name, threads, dtype in request.cell_groups:
            cells = [Cell(layer, pass_name, f, threads, dtype=dtype) for f in request.formats]
            now = time.monotonic()
            yield effort.step(f"{layer.name}, {pass_name}, {counted(threads)}", 0.0, now)
            left = None if request.budget is None else request.budget - (now - start_time)
            rounds = rounds_within(request.rounds, left, effort.ahead(now))
            outcome.cells.extend(cells)
            folder = _folder(root, request, layer, dtype)
            _measure(cells, request.peers, rounds, workers, outcome.workers, folder, judge)
            effort.step("", len(cells) * effort.of_cell(layer))
        outcome.finished = True


def _solve(request: Request, solvers: list[WorkerProcess], root: Path) -> Iterator[Layer]:
    """Let the oracles write every layer's problem, largest first; yield layers as they are done."""
    idle: SimpleQueue[WorkerProcess] = SimpleQueue()
    for solver in solvers:
        idle.put(solver)

    def solve(problem: tuple[Layer, str]) -> Layer:
        layer, dtype = problem
        folder = _folder(root, request, layer, dtype)
        folder.mkdir()
        solver = idle.get()
        try:
            solver.ask(
                "solve",
                layer=layer.spec,
                passes=request.passes,
                dtype=dtype,
                folder=str(folder),
                seed=request.seed + request.layers.index(layer),
            )
        finally:
            idle.put(solver)
        return layer

    largest_first = sorted(request.problems, key=lambda p: -p[0].geometry.multiply_adds)
    pool = ThreadPoolExecutor(len(solvers))
    try:
        yield from pool.map(solve, largest_first)
    finally:
        # After Ctrl-C the workers' processes are about to end, and with them what these wait for.
        pool.shutdown(wait=False, cancel_futures=True)


def _describe(worker: WorkerProcess, request: Request) -> dict[str, Any]:
    """Return what a worker says it is made of; a peer that cannot even start computes nothing."""
    try:
        if worker.peer == OURS:
            worker.ask("choose_algorithm", algorithm=request.algorithm, strict=request.strict)
        return worker.ask("describe")
    except WorkerError as error:
        if error.peer == OURS:
            raise
        loaded = {"problem": str(error)}
        return {"threads": worker.threads, "formats": [], "loaded": loaded, "variables": {}}


def _folder(root: Path, request: Request, layer: Layer, dtype: str) -> Path:
    return root / f"{request.layers.index(layer)}-{dtype}"


def _measure(
    cells: Sequence[Cell],
    peers: tuple[str, ...],
    rounds: int,
    workers: Workers,
    described: Mapping[str, Any],
    folder: Path,
    judge: WorkerProcess,
) -> None:
    """Check the results of every peer in a group of cells, then time the peers in turn."""
    threads = cells[0].threads
    about = {peer: described[f"{peer}@{threads}"] for peer in (OURS, *peers)}
    ready: dict[tuple[int, str], WorkerProcess] = {}
    for (i, cell), peer in itertools.product(enumerate(cells), about):
        try:
            worker = workers[peer, threads]
            if _knows(about[peer], cell) and _check(cell, worker, folder, judge):
                worker.ask("calibrate", format=cell.format)
                ready[i, peer] = worker
        except WorkerError as error:
            cell.problems[peer] = str(error)
    timed = {
        (i, peer): partial(worker.ask, "time", format=cells[i].format)
        for (i, peer), worker in ready.items()
    }
    most_rounds = {(i, peer): about[peer]["most_rounds"] for i, peer in ready}
    try:
        for worker in ready.values():
            worker.ask("settle")
        for (i, peer), seconds in take_turns(timed, most_rounds, rounds):
            cells[i].seconds.setdefault(peer, []).append(seconds)
        for (_, peer), worker in ready.items():
            about[peer]["peak_bytes"] = worker.ask("peak_bytes")
    except WorkerError as error:
        for cell in cells:
            cell.problems[error.peer] = str(error)


def _knows(about: Mapping[str, Any], cell: Cell) -> bool:
    """Return whether a peer computes cells of this format, pass and dtype at all."""
    return (
        cell.format in about["formats"]
        and cell.pass_name in about["passes"]
        and cell.dtype in about["dtypes"]
    )


def _check(cell: Cell, worker: WorkerProcess, folder: Path, judge: WorkerProcess) -> bool:
    """Have a worker compute a cell and the oracle judge it; False if it has no such convolution."""
    # In a file, and judged elsewhere: a worker's memory is to be its peer's alone.
    result = str(folder / f"result-{worker.peer}.npy")
    prepared = worker.ask(
        "prepare",
        layer=cell.layer.spec,
        dtype=cell.dtype,
        pass_name=cell.pass_name,
        format=cell.format,
        folder=str(folder),
        result=result,
    )
    if prepared is None:
        return False
    if worker.peer == OURS:
        cell.algorithm = prepared["algorithm"]
    error = judge.ask("judge", folder=str(folder), pass_name=cell.pass_name, result=result)
    cell.errors[worker.peer] = error
    return True


class Effort:
    """A guess at how long each step takes, and how much of the whole is done.

    ``whole``: about how many seconds all of it takes, before anything is known of the machine.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        cells = len(request.passes) * len(request.formats) * len(request.threads)
        self.whole = sum(
            self.of_oracle(layer) + cells * self.of_cell(layer) for layer, _ in request.problems
        )
        self._steps_done = 0.0
        self._mark = (0.0, 0.0)

    @property
    def done(self) -> float:
        """Return how much of the whole has been done, between 0 and 1."""
        return min(1.0, self._steps_done / self.whole)

    def step(self, text: str, effort: float, now: float | None = None) -> Step:
        """Add a step's effort to what has been done; return the progress."""
        self._steps_done += effort
        left = None if now is None else self.ahead(now)
        return Step(text, self.done, left or None)

    def mark(self, now: float) -> None:
        """Measure the pace from this moment: what comes next has a pace of its own."""
        self._mark = (now, self._steps_done)

    def ahead(self, now: float) -> float:
        """Return how many seconds the rest takes at the pace since the mark; 0 if there is none."""
        then, steps_then = self._mark
        steps = self._steps_done - steps_then
        return (now - then) / steps * (self.whole - self._steps_done) if steps else 0.0

    def of_oracle(self, layer: Layer) -> float:
        """About seconds: the slow oracle, twice a pass, at some 20 GFLOP/s."""
        return 0.05 + 2 * len(self._request.passes) * 1e-10 * layer.geometry.multiply_adds

    def of_cell(self, layer: Layer) -> float:
        """About seconds: a sample's and a pause's 13 ms a turn, more for calls that last longer."""
        turns = self._request.rounds * (1 + len(self._request.peers))
        return turns * (0.013 + 5e-12 * layer.geometry.multiply_adds)


def rounds_within(rounds: int, left: float | None, ahead: float) -> int:
    """Return how many rounds the next cell gets.

    Parameters
    ----------
    rounds : int
        What a cell gets if there is time.
    left : float or None
        Seconds of the budget that are left; None for as many as it takes.
    ahead : float
        Seconds that the rest would take at the pace so far.
    """
    if left is None or ahead <= left:
        return rounds
    if left <= 0:  # spent before the first cell, on a busy machine
        return min(rounds, LEAST_ROUNDS)
    return min(rounds, max(LEAST_ROUNDS, int(rounds * left / ahead)))
