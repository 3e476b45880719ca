"""``convcore bench --distributed``: training by several ranks, measured, and by many on paper."""

from __future__ import annotations

import argparse
import importlib.util
from typing import TYPE_CHECKING

from convcore.cli.bench.nets import save_json
from convcore.cli.bench.options import (
    console_of,
    environment_of,
    refuse,
    require_folders,
    rounds_of,
)
from convcore.cli.errors import UsageError
from convcore.cli.machine import cpu_name, load_average

if TYPE_CHECKING:
    from collections.abc import Iterator

    from convcore.bench.distributed import Effort, Run

# Options that data-parallel training has no use for.
_OTHERS = (
    *("suite", "layer", "peers", "compiled", "csv", "compare", "strict", "algorithm", "passes"),
    *("formats", "dtypes", "seed", "plot", "page", "precision"),
)


def run(arguments: argparse.Namespace) -> int:
    """Time data-parallel training; return 1 if, as asked, a limit is checked and not kept."""
    from convcore.bench.distributed import measure
    from convcore.bench.progress import follow
    from convcore.bench.promises import rank_promises
    from convcore.bench.report import print_promises, print_ranks

    refuse(arguments, "--distributed", *_OTHERS)
    require_folders(arguments, "json")
    effort = _effort(arguments)
    console = console_of(130)
    for line in _announcements(effort):
        console.print(line)
    runs: list[Run] = []
    try:
        follow(measure(lambda threads: environment_of(arguments, threads), effort, runs))
    finally:  # after Ctrl-C too
        if runs:
            if arguments.json:
                save_json(arguments, [one.as_data() for one in runs])
            print_ranks(console, runs, effort.rounds)
    found = rank_promises(runs)
    print_promises(console, found)
    return 1 if arguments.check and not all(promise.kept for promise in found) else 0


def _effort(arguments: argparse.Namespace) -> Effort:
    """Return what is measured, and how long it takes."""
    from convcore.bench.distributed import Effort, nets_named, setups
    from convcore.engine.runtime.cpus import cpu_limit

    threads = arguments.threads or (1,)
    if len(threads) > 1:
        raise UsageError("--threads: with --distributed one number, of the threads of a rank")
    ranks = arguments.ranks or tuple(range(1, max(1, cpu_limit() // threads[0]) + 1))
    if max(ranks) > 1:
        _require_mpi()
    try:
        nets = nets_named(arguments.nets or ())
    except ValueError as error:
        raise UsageError(f"--nets: {error}") from None
    return Effort(nets, setups(ranks, threads[0]), rounds_of(arguments))


def _require_mpi() -> None:
    """Raise UsageError unless mpi4py and a launcher are there."""
    from convcore.bench.distributed import find_mpiexec

    missing = [
        *(["mpi4py"] if importlib.util.find_spec("mpi4py") is None else []),
        *(["mpiexec"] if find_mpiexec() is None else []),
    ]
    if missing:
        raise UsageError(
            f"--distributed needs MPI for more than one rank, and {' and '.join(missing)} "
            "cannot be found: pip install 'convcore[mpi]'"
        )


def _announcements(effort: Effort) -> Iterator[str]:
    """Yield the lines that are printed before anything runs."""
    from convcore.bench.progress import about, plural
    from convcore.engine.runtime.cpus import cpu_limit

    cores = cpu_limit()
    load = load_average()
    busy = "" if load is None else f", load average {load:.1f}"
    yield f"CPU: {cpu_name()}, {plural(cores, 'core')}{busy}"
    if (most := max(one.ranks * one.threads for one in effort.setups)) > cores:
        yield f"{most} threads share {plural(cores, 'core')}: an efficiency says little."
    nets = ", ".join(net.name for net in effort.nets)
    named = ", ".join(f"{one.ranks} x {one.threads}" for one in effort.setups)
    rounds = plural(effort.rounds, "round")
    yield f"{nets}; ranks x threads: {named}; {rounds} each: {about(effort.whole)}."
