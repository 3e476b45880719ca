"""``convcore bench``: layers checked against the oracle and timed beside peers."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from convcore.bench.environment import ISAS, removed_variables
from convcore.bench.layer import FIELDS, FORMATS, MAPS, Layer, parse_layer
from convcore.cli.errors import UsageError, require_extra
from convcore.cli.machine import cpu_name, load_average

if TYPE_CHECKING:
    from rich.console import Console

    from convcore.bench.overhead import Cost
    from convcore.bench.request import Request
    from convcore.bench.runner import Outcome

_QUICK_ROUNDS, _ROUNDS = 5, 9
# Leaves something of a minute to start, and to end the cell that is being measured.
_QUICK_SECONDS = 50.0
# Each oracle holds a layer in float64, several times over.
_MOST_ORACLES = 4
# Load average a CPU beyond which timings say something about other programs too.
_BUSY = 0.25


def add_command(commands: argparse._SubParsersAction) -> None:
    """Add ``bench`` to the parser."""
    parser = commands.add_parser(
        "bench",
        help="check and time real layers beside NumPy and PyTorch",
        description="Compute layers of real nets, forward and both gradients; check every result "
        "against a slow oracle in float64; time convcore beside its peers, in processes of their "
        "own, taking turns. Exit code 1 if a result is wrong.",
    )
    what = parser.add_argument_group("what to measure")
    what.add_argument(
        "--quick", action="store_true", help=f"at most {_QUICK_ROUNDS} rounds: under a minute"
    )
    what.add_argument(
        "--suite",
        choices=("quick", "overhead"),
        default="quick",
        help="quick: layers of real nets; overhead: small operations, by which the cost of a call "
        "and of the graph shows",
    )
    what.add_argument(
        "--layer",
        action="append",
        metavar=",".join(FIELDS),
        help="a layer of your own instead of the suite; may be repeated",
    )
    what.add_argument("--maps", type=_some_of(MAPS), default=MAPS, metavar=",".join(MAPS))
    what.add_argument(
        "--formats", type=_some_of(FORMATS), default=FORMATS, metavar=",".join(FORMATS)
    )
    what.add_argument("--threads", type=_counts, metavar="1,2", help="default: 1 and all")
    what.add_argument("--peers", type=_names, metavar="torch,numpy", help="default: all installed")
    how = parser.add_argument_group("how")
    how.add_argument("--rounds", type=_count, metavar="R", help="samples a cell, taken in turn")
    how.add_argument("--seed", type=int, default=0, help="of the arrays' random numbers")
    how.add_argument(
        "--isa",
        choices=ISAS,
        default="native",
        help="hold OpenBLAS, oneDNN and PyTorch to an instruction set; native lets them use "
        "all that the CPU has",
    )
    how.add_argument(
        "--env", choices=("keep",), help="keep: give the workers the environment as it was found"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="save everything measured")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Measure, print, save; return 1 if any result was wrong."""
    require_extra("bench", "rich")
    from rich.console import Console

    if arguments.suite == "overhead":
        return _run_overhead(arguments)
    from convcore.bench.process import WorkerError
    from convcore.bench.runner import Outcome

    request, outcome = _request(arguments), Outcome()
    console = Console(highlight=False)
    if not console.is_terminal:
        # A file has no width; the table has.
        console.width = 140
    load = load_average()
    console.print(*_announcements(request, load), sep="\n")
    try:
        _measure(request, outcome)
    except WorkerError as error:
        print(f"convcore bench: {error}", file=sys.stderr)
        return 1
    finally:
        # After Ctrl-C too: what was measured is shown and saved.
        if outcome.cells:
            machine = {"cpu": cpu_name(), "load_average_before": load}
            _finish(console, request, outcome, machine, arguments.json)
    return 1 if outcome.wrong else 0


def _run_overhead(arguments: argparse.Namespace) -> int:
    """Time small operations; return 1 if a result was wrong or a worker failed."""
    from rich.console import Console

    from convcore.bench import overhead, report
    from convcore.bench.process import WorkerError
    from convcore.bench.runner import Outcome

    asked = tuple(peer for peer in _peers(arguments.peers) if peer in overhead.PEERS)
    rounds = arguments.rounds or (_QUICK_ROUNDS if arguments.quick else _ROUNDS)
    console = Console(highlight=False)
    costs: list[Cost] = []
    outcome = Outcome()
    try:
        with console.status("timing small operations") as status:
            for cost in overhead.measure(
                *(os.environ, asked, rounds, arguments.isa, arguments.env == "keep"),
                outcome.workers,
            ):
                costs.append(cost)
                status.update(f"timed {cost.operation.name}")
    except WorkerError as error:
        print(f"convcore bench: {error}", file=sys.stderr)
        return 1
    finally:  # after Ctrl-C too
        if costs:
            report.print_workers(console, outcome, cpu_name())
            report.print_costs(console, costs, asked)
            if arguments.json:
                _save_costs(arguments.json, costs)
    return 1 if any(cost.wrong for cost in costs) else 0


def _save_costs(file: Path, costs: Sequence[Cost]) -> None:
    data = [
        {"operation": c.operation.name, "limit_us": c.operation.limit, "seconds": c.seconds}
        for c in costs
    ]
    file.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def _request(arguments: argparse.Namespace) -> Request:
    """Return what the arguments ask for."""
    from convcore.bench.request import Request
    from convcore.bench.suites import SUITES
    from convcore.engine.cpus import cpu_limit

    if arguments.env == "keep" and arguments.isa != "native":
        raise UsageError("--isa sets variables and --env keep leaves them: give one of the two")
    if arguments.json and not arguments.json.absolute().parent.is_dir():
        raise UsageError(f"--json: there is no directory {arguments.json.parent}")
    return Request(
        layers=_layers(arguments.layer) if arguments.layer else SUITES["quick"],
        maps=arguments.maps,
        formats=arguments.formats,
        threads=arguments.threads or tuple(sorted({1, cpu_limit()})),
        peers=_peers(arguments.peers),
        rounds=arguments.rounds or (_QUICK_ROUNDS if arguments.quick else _ROUNDS),
        budget=_QUICK_SECONDS if arguments.quick else None,
        isa=arguments.isa,
        keep=arguments.env == "keep",
        seed=arguments.seed,
    )


def _layers(specs: Sequence[str]) -> tuple[Layer, ...]:
    try:
        return tuple(dict.fromkeys(parse_layer(spec) for spec in specs))
    except ValueError as error:
        raise UsageError(f"--layer: {error}") from None


def _peers(asked: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the peers asked for, or all that are installed."""
    from convcore.bench.peers import PEERS, is_installed

    known = [name for name in PEERS if name != "convcore"]
    if asked is None:
        return tuple(filter(is_installed, known))
    for name in asked:
        if name not in known:
            raise UsageError(f"--peers: {name!r} is none of {', '.join(known)}")
        if not is_installed(name):
            raise UsageError(f"--peers: {name} is not installed")
    return asked


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
            f"OpenBLAS, oneDNN and PyTorch are held to --isa {request.isa}; convcore's and NumPy's "
            "own loops are not."
        )
    if load is not None and load > _BUSY * (os.cpu_count() or 1):
        lines.append(
            f"The machine was busy (load average {load:.1f} on {os.cpu_count()} CPUs): if other "
            "programs still run, do not believe times on all threads."
        )
    return lines or ["The workers' environment is as found, but for the number of threads."]


def _measure(request: Request, outcome: Outcome) -> None:
    """Run the benchmark behind a progress bar on standard error."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    from convcore.bench.runner import run as run_bench
    from convcore.engine.cpus import cpu_limit

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task("starting", total=1.0)
        for step in run_bench(request, os.environ, outcome, min(cpu_limit(), _MOST_ORACLES)):
            bar.update(task, description=step.text, completed=step.done)


def _finish(
    console: Console,
    request: Request,
    outcome: Outcome,
    machine: Mapping[str, Any],
    file: Path | None,
) -> None:
    """Print the report; save the data if asked to."""
    from convcore.bench import report
    from convcore.bench.record import as_data

    report.print_workers(console, outcome, machine["cpu"])
    report.print_cells(console, outcome, request)
    report.print_summary(console, outcome, request)
    if file is not None:
        data = as_data(outcome, request, machine)
        file.write_text(json.dumps(data, indent=1, allow_nan=False) + "\n", encoding="utf-8")
        console.print(f"Saved to {file}")


def _some_of(allowed: tuple[str, ...]) -> Callable[[str], tuple[str, ...]]:
    """Return a reader of some of the names allowed, in their own order."""

    def read(text: str) -> tuple[str, ...]:
        names = text.split(",")
        for name in names:
            if name not in allowed:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(allowed)}")
        return tuple(name for name in allowed if name in names)

    return read


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in text.split(",") if name))


def _count(text: str) -> int:
    """Read a whole number above 0."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number above 0, got {text!r}")
    return int(text)


def _counts(text: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(_count(part) for part in text.split(",")))
