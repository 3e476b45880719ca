"""Who is asked what, in which order: exact results, then every cell checked and timed in turn."""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from convcore.bench.cell import OURS, Cell, Outcome
from convcore.bench.effort import Effort, Step, rounds_within
from convcore.bench.environment import worker_environment
from convcore.bench.layer import Layer
from convcore.bench.process import WorkerError, WorkerProcess
from convcore.bench.request import Request
from convcore.bench.text import counted

# The oracle is NumPy in float64: its worker is the NumPy peer's, asked to solve and to judge.
_ORACLE = "numpy"

Workers = Mapping[tuple[str, int], WorkerProcess]
Name = TypeVar("Name", bound=Hashable)


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
            outcome.workers[f"{peer}@{threads}"] = _describe(worker, request.strict)
        yield effort.step("the speed of a large matrix product", 0.0)
        for threads, ruler in rulers.items():
            outcome.peaks[threads] = ruler.ask("measure_peak", dtypes=request.dtypes)
            ruler.close()
        effort.mark(time.monotonic())
        for layer, map_name, threads, dtype in request.bouts:
            cells = [Cell(layer, map_name, f, threads, dtype=dtype) for f in request.formats]
            now = time.monotonic()
            yield effort.step(f"{layer.name}, {map_name}, {counted(threads)}", 0.0, now)
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
                maps=request.maps,
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


def _describe(worker: WorkerProcess, strict: bool) -> dict[str, Any]:
    """Return what a worker says it is made of; a peer that cannot even start computes nothing."""
    try:
        if strict and worker.peer == OURS:
            worker.ask("forbid_winograd")
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
    """Check every peer's results in the cells of a bout, then time them in turn, round by round."""
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
    """Return whether a peer computes cells of this format, map and dtype at all."""
    return (
        cell.format in about["formats"]
        and cell.map in about["maps"]
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
        map_name=cell.map,
        format=cell.format,
        folder=str(folder),
        result=result,
    )
    if prepared is None:
        return False
    if worker.peer == OURS:
        cell.algorithm = prepared["algorithm"]
    error = judge.ask("judge", folder=str(folder), map_name=cell.map, result=result)
    cell.errors[worker.peer] = error
    return True


def take_turns(
    timed: Mapping[Name, Callable[[], float]], most_rounds: Mapping[Name, int], rounds: int
) -> Iterator[tuple[Name, float]]:
    """Take samples in turn, A B C A B C ...; yield each with its name as it comes.

    A name sits out once it has had its ``most_rounds``.
    """
    for turn, name in itertools.product(range(rounds), timed):
        if turn < most_rounds[name]:
            yield name, timed[name]()
