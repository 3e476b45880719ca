"""``convcore bench`` on layers: check, time, report, and compare with promises and old runs."""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from convcore.bench.layers import Layer, parse_layer
from convcore.bench.process import removed_variables
from convcore.cli.bench.options import (
    command_line,
    console_of,
    keeps_environment,
    machine_now,
    peers_of,
    require_drawable,
    require_folders,
    rounds_of,
    suites_of,
)
from convcore.cli.errors import UsageError
from convcore.cli.machine import load_average
from convcore.cli.parser import nearest

if TYPE_CHECKING:
    from rich.console import Console

    from convcore.bench.records import Files
    from convcore.bench.results import Outcome, Request

# Leaves something of a minute to start, and to end the cell that is being measured.
_QUICK_SECONDS = 50.0
# All workers' imports.
_STARTING_SECONDS = 4.0
# Each oracle holds a layer in float64, several times over.
_MOST_ORACLES = 4
# Bytes of an element in float64, in which the oracle computes.
_ORACLE_BYTES = 8
# Load average a CPU beyond which timings say something about other programs too.
_BUSY = 0.25


def run(arguments: argparse.Namespace) -> int:
    """Measure, print, save; return 1 if any result was wrong or any figure beyond its limit."""
    from convcore.bench.records import save
    from convcore.bench.results import Outcome

    request, files, outcome = _request(arguments), _files(arguments), Outcome()
    before = _older_run(arguments.compare)
    console = console_of(130 + 18 * len(request.peers))
    load = load_average()
    machine = {
        **machine_now(),
        "load_average_before": load,
        "removed_variables": removed_variables(os.environ, request.isa, request.keep),
    }
    console.print(*_announcements(request, load), sep="\n", highlight=False)
    all_well = False
    try:
        _measure(request, outcome)
    finally:
        # After Ctrl-C too: what was measured is shown and saved.
        if outcome.cells:
            # Saved first: nobody may read what is printed any longer.  Where that fails, as on a
            # full disk, what was measured is printed still.
            try:
                saved = list(save(files, outcome, request, machine, command_line(arguments)))
            finally:
                brief = arguments.quick and not arguments.details
                all_well = _report(console, request, outcome, machine, arguments.check, brief)
            for line in saved:
                console.print(line, markup=False)
    if before is not None:
        all_well &= _compare(console, before, outcome, request, machine, arguments.compare)
    return 0 if all_well else 1


def _request(arguments: argparse.Namespace) -> Request:
    """Return what the arguments ask for."""
    from convcore.bench.peers import NETS_ONLY
    from convcore.bench.results import Request
    from convcore.bench.suites import layers_of
    from convcore.engine.runtime.cpus import cpu_limit

    if keeps_environment(arguments) and arguments.isa != "native":
        raise UsageError("--isa sets variables and --env keep leaves them: give one of the two")
    suites = suites_of(arguments)
    peers = peers_of(arguments.peers, arguments.quick)
    for peer in set(peers) & set(NETS_ONLY):
        raise UsageError(
            f"--peers: {peer} is for --nets: a layer's result is checked in eps of its own dtype"
        )
    return Request(
        layers=tuple(dict.fromkeys((*layers_of(suites), *_layers(arguments.layer or ())))),
        passes=arguments.passes,
        formats=arguments.formats,
        threads=arguments.threads or tuple(sorted({1, cpu_limit()})),
        peers=peers,
        rounds=rounds_of(arguments),
        dtypes=arguments.dtypes,
        suites=suites,
        budget=_QUICK_SECONDS if arguments.quick else None,
        isa=arguments.isa,
        strict=arguments.strict,
        algorithm=_algorithm(arguments),
        keep=keeps_environment(arguments),
        seed=arguments.seed,
    )


def _algorithm(arguments: argparse.Namespace) -> str | None:
    """Return what convcore is held to, if anything."""
    from convcore.engine.conv.algorithms import NAMES

    name = arguments.algorithm
    if name is not None and name not in NAMES:
        hint = nearest(name, NAMES)
        raise UsageError(f"--algorithm: {name!r} is none of {', '.join(NAMES)}{hint}")
    if name == "winograd" and arguments.strict:
        raise UsageError("--strict is without Winograd: give it or --algorithm winograd")
    return name


def _layers(specs: Sequence[str]) -> tuple[Layer, ...]:
    try:
        layers = tuple(parse_layer(spec) for spec in specs)
    except ValueError as error:
        raise UsageError(f"--layer: {error}") from None
    for layer in layers:
        _check_memory(layer)
    return layers


def _check_memory(layer: Layer) -> None:
    """Raise UsageError for a layer whose arrays the machine cannot hold."""
    shapes = layer.geometry
    sizes = (shapes.input_shape, shapes.weight_shape, shapes.output_shape)
    needed = _ORACLE_BYTES * sum(math.prod(shape) for shape in sizes)
    from convcore.engine.runtime.cpus import memory_bytes  # loads the kernels

    there = memory_bytes()
    if there is not None and needed > there:
        raise UsageError(
            f"--layer: {layer.spec} needs {needed / 2**30:,.1f} GiB for input, weight and output "
            f"in float64, and this machine has {there / 2**30:,.1f}"
        )


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
    if request.algorithm:
        lines.append(
            f"convcore is held to --algorithm {request.algorithm}; a pass that it cannot compute "
            "is another's, as the table says."
        )
    if load is not None and load > _BUSY * (os.cpu_count() or 1):
        lines.append(
            f"Other programs used this machine just now (load average {load:.1f} on "
            f"{os.cpu_count()} CPUs); where they still run, times on all threads are too long."
        )
    lines = lines or ["The workers' environment is as found, but for the number of threads."]
    return [*lines, _estimate(request)]


def _estimate(request: Request) -> str:
    """Return what is measured and about how long that takes."""
    from convcore.bench.progress import about, plural
    from convcore.bench.runner import Effort

    seconds = Effort(request).whole + _STARTING_SECONDS
    if request.budget is not None:
        seconds = min(seconds, request.budget)
    cells = len(list(request.cell_groups)) * len(request.formats)
    rounds = plural(request.rounds, "round")
    return f"{plural(cells, 'cell')}, {rounds} each: {about(seconds)}."


def _measure(request: Request, outcome: Outcome) -> None:
    """Run the benchmark, and show how far it is."""
    from convcore.bench.progress import follow
    from convcore.bench.runner import run as run_bench
    from convcore.engine.runtime.cpus import cpu_limit

    follow(run_bench(request, os.environ, outcome, min(cpu_limit(), _MOST_ORACLES)))


def _files(arguments: argparse.Namespace) -> Files:
    """Return where to save what; whatever could not be saved is refused before anything runs."""
    from convcore.bench.records import Files

    require_folders(arguments, "json", "csv", "plot", "page")
    require_drawable(arguments.plot, arguments.page)
    return Files(arguments.json, arguments.csv, arguments.plot, arguments.page)


def _older_run(file: Path | None) -> dict[str, Any] | None:
    """Read the run to compare with, before anything is measured."""
    from convcore.bench.records import check_readable

    if file is None:
        return None
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        check_readable(data)
    except OSError as error:
        raise UsageError(f"--compare: {file}: {error.strerror or error}") from None
    except ValueError as error:
        raise UsageError(f"--compare: {file} {error}") from None
    return data


def _report(
    console: Console,
    request: Request,
    outcome: Outcome,
    machine: Mapping[str, Any],
    check: bool,
    brief: bool,
) -> bool:
    """Print the report; return whether all results are right and, if asked, all promises kept.

    brief : leave out the tables of workers, cells, errors and kept promises
    """
    from convcore.bench import report
    from convcore.bench.promises import promises

    found = promises(outcome, request)
    if brief:
        report.print_brief(console, outcome, request, machine["cpu"], found)
    else:
        report.print_workers(console, outcome, machine["cpu"])
        report.print_cells(console, outcome, request)
        report.print_promises(console, found)
        report.print_summary(console, outcome, request)
    kept = all(promise.kept for promise in found)
    if check:
        console.print("All figures are within their limits." if kept else "A limit is not kept.")
    return not outcome.wrong and (kept or not check)


def _compare(
    console: Console,
    before: Mapping[str, Any],
    outcome: Outcome,
    request: Request,
    machine: Mapping[str, Any],
    file: Path,
) -> bool:
    """Print what has changed since an older run; return whether nothing has become slower."""
    from convcore.bench import report
    from convcore.bench.records import as_data, compare

    # Through JSON's own text, so that both have what the older has been through.
    after = json.loads(json.dumps(as_data(outcome, request, machine)))
    comparison = compare(before, after)
    if not comparison.changes:
        raise UsageError(f"--compare: {file} has no cell and peer in common with this run")
    report.print_comparison(console, comparison, file.name)
    return not comparison.regressions
