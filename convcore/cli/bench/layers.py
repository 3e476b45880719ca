"""Layers, checked against the oracle and timed beside peers."""

from __future__ import annotations

import argparse
import datetime
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from convcore.bench.environment import removed_variables
from convcore.bench.layer import Layer, parse_layer
from convcore.cli.bench.asked import keeps_environment, peers_of, rounds_of, suites_of
from convcore.cli.bench.results import compared, files_asked, finish, older_run, save
from convcore.cli.errors import UsageError
from convcore.cli.machine import cpu_name, load_average

if TYPE_CHECKING:
    from rich.console import Console

    from convcore.bench.cell import Outcome
    from convcore.bench.request import Request

# Leaves something of a minute to start, and to end the cell that is being measured.
_QUICK_SECONDS = 50.0
# Each oracle holds a layer in float64, several times over.
_MOST_ORACLES = 4
# Load average a CPU beyond which timings say something about other programs too.
_BUSY = 0.25


def run(arguments: argparse.Namespace) -> int:
    """Measure, print, save; return 1 if any result was wrong or any figure beyond its limit."""
    from convcore.bench.cell import Outcome
    from convcore.bench.process import WorkerError

    request, files, outcome = _request(arguments), files_asked(arguments), Outcome()
    before = older_run(arguments.compare)
    console = _console(request)
    load = load_average()
    machine = {
        "cpu": cpu_name(),
        "date": datetime.date.today().isoformat(),
        "load_average_before": load,
        "removed_variables": removed_variables(os.environ, request.isa, request.keep),
    }
    console.print(*_announcements(request, load), sep="\n", highlight=False)
    all_well = False
    try:
        _measure(request, outcome)
    except WorkerError as error:
        print(f"convcore bench: {error}", file=sys.stderr)
        return 1
    finally:
        # After Ctrl-C too: what was measured is shown and saved.
        if outcome.cells:
            all_well = finish(console, request, outcome, machine, arguments.check)
            save(console, files, outcome, request, machine)
    if before is not None:
        all_well &= compared(console, before, outcome, request, machine, arguments.compare)
    return 0 if all_well else 1


def _console(request: Request) -> Console:
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        # A file has no width; the table has.
        console.width = 130 + 18 * len(request.peers)
    return console


def _request(arguments: argparse.Namespace) -> Request:
    """Return what the arguments ask for."""
    from convcore.bench.request import Request
    from convcore.bench.suites import layers_of
    from convcore.engine.runtime.cpus import cpu_limit

    if keeps_environment(arguments) and arguments.isa != "native":
        raise UsageError("--isa sets variables and --env keep leaves them: give one of the two")
    suites = suites_of(arguments)
    return Request(
        layers=tuple(dict.fromkeys((*layers_of(suites), *_layers(arguments.layer or ())))),
        maps=arguments.maps,
        formats=arguments.formats,
        threads=arguments.threads or tuple(sorted({1, cpu_limit()})),
        peers=peers_of(arguments.peers, arguments.quick),
        rounds=rounds_of(arguments),
        dtypes=arguments.dtypes,
        suites=suites,
        budget=_QUICK_SECONDS if arguments.quick else None,
        isa=arguments.isa,
        strict=arguments.strict,
        keep=keeps_environment(arguments),
        seed=arguments.seed,
    )


def _layers(specs: Sequence[str]) -> tuple[Layer, ...]:
    try:
        return tuple(parse_layer(spec) for spec in specs)
    except ValueError as error:
        raise UsageError(f"--layer: {error}") from None


def _announcements(request: Request, load: float | None) -> list[str]:
    """Return the lines that are printed before anything runs."""
    removed = removed_variables(os.environ, request.isa, request.keep)
    lines = [
        f"Removed from the workers' environment: {name}={value} "
        "(it holds a library back; --env keep leaves it)"
        for name, value in removed.items()
    ]
    if request.isa != "native":
        lines.append(
            f"convcore, OpenBLAS, oneDNN and PyTorch are held to --isa {request.isa}; ONNX Runtime "
            "and NumPy's own loops cannot be."
        )
    if request.strict:
        lines.append("convcore is held to strict mode: direct summation, no Winograd.")
    if load is not None and load > _BUSY * (os.cpu_count() or 1):
        lines.append(
            f"The machine was busy (load average {load:.1f} on {os.cpu_count()} CPUs): if other "
            "programs still run, do not believe times on all threads."
        )
    return lines or ["The workers' environment is as found, but for the number of threads."]


def _measure(request: Request, outcome: Outcome) -> None:
    """Run the benchmark, and show how far it is."""
    from convcore.bench.progress import follow
    from convcore.bench.runner import run as run_bench
    from convcore.engine.runtime.cpus import cpu_limit

    follow(run_bench(request, os.environ, outcome, min(cpu_limit(), _MOST_ORACLES)))
