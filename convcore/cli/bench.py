"""``convcore bench``: layers checked against the oracle and timed beside peers."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from convcore.bench.environment import ISAS, removed_variables
from convcore.bench.layer import DTYPES, FIELDS, FORMATS, MAPS, Layer, parse_layer
from convcore.cli.errors import UsageError, require_extra
from convcore.cli.machine import cpu_name, load_average

if TYPE_CHECKING:
    from rich.console import Console

    from convcore.bench.cell import Outcome
    from convcore.bench.overhead import Cost
    from convcore.bench.request import Request
    from convcore.bench.saving import Files

_QUICK_ROUNDS, _ROUNDS = 5, 9
# Leaves something of a minute to start, and to end the cell that is being measured.
_QUICK_SECONDS = 50.0
# Each oracle holds a layer in float64, several times over.
_MOST_ORACLES = 4
# Load average a CPU beyond which timings say something about other programs too.
_BUSY = 0.25
# Operations around the arithmetic, not layers: timed and shown in a way of its own.
_OVERHEAD = "overhead"


def add_command(commands: argparse._SubParsersAction) -> None:
    """Add ``bench`` to the parser."""
    parser = commands.add_parser(
        "bench",
        help="check and time real layers beside PyTorch and other libraries",
        description="Compute layers of real nets, forward and both gradients; check every result "
        "against a slow oracle in float64; time convcore beside its peers, in processes of their "
        "own, taking turns. Exit code 1 if a result is wrong, if --check finds a figure beyond its "
        "limit, or if --compare finds a cell that has become slower.",
    )
    _add_what(parser.add_argument_group("what to measure"))
    _add_how(parser.add_argument_group("how"))
    _add_results(parser.add_argument_group("what to do with it"))
    parser.set_defaults(run=run)


def _add_what(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--quick", action="store_true", help=f"at most {_QUICK_ROUNDS} rounds: under a minute"
    )
    group.add_argument(
        "--suite",
        action="append",
        type=_names,
        metavar="NAME,...",
        help="quick (the default), table, resnet50, vgg16, mobilenetv2, unet, lenet, stems, "
        "depthwise, dilated, grouped, n1 (one image), tiny, scaling (how cost grows with N and "
        "H*W); may be repeated. overhead, alone: small operations, by which the cost of a call and "
        "of the graph shows",
    )
    group.add_argument(
        "--nets",
        nargs="?",
        const=(),
        type=_names,
        metavar="NAME,...",
        help="whole nets, trained and run, in place of layers: resnet18, resnet50, mobilenet_v2, "
        "vgg16, unet, lenet; all of them if none is named",
    )
    group.add_argument(
        "--layer",
        action="append",
        metavar=",".join(FIELDS),
        help="a layer of your own, instead of a suite or beside those named; may be repeated",
    )
    group.add_argument("--maps", type=_some_of(MAPS), default=MAPS, metavar=",".join(MAPS))
    group.add_argument(
        "--formats", type=_some_of(FORMATS), default=FORMATS, metavar=",".join(FORMATS)
    )
    group.add_argument(
        "--dtypes", type=_some_of(DTYPES), default=DTYPES[:1], metavar=",".join(DTYPES),
        help="default: float32",
    )  # fmt: skip
    group.add_argument("--threads", type=_counts, metavar="1,2", help="default: 1 and all")
    group.add_argument(
        "--peers",
        type=_names,
        metavar="torch,onnxruntime,openvino,numpy,scipy",
        help="default: all installed but scipy, which takes seconds a call; with --quick torch and "
        "numpy; none for none",
    )


def _add_how(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--rounds", type=_count, metavar="R", help="samples a cell, taken in turn")
    group.add_argument("--seed", type=int, default=0, help="of the arrays' random numbers")
    group.add_argument(
        "--isa",
        choices=ISAS,
        default="native",
        help="hold convcore, OpenBLAS, oneDNN and PyTorch to an instruction set; native lets them "
        "use all that the CPU has",
    )
    group.add_argument(
        "--strict", action="store_true", help="hold convcore to direct summation: no Winograd"
    )
    group.add_argument(
        "--env", choices=("keep",), help="keep: give the workers the environment as it was found"
    )


def _add_results(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--json", type=Path, metavar="FILE", help="save everything measured")
    group.add_argument("--csv", type=Path, metavar="FILE", help="save a row a cell")
    group.add_argument(
        "--plot", type=Path, metavar="FILE", help="draw the ratios, layer by layer: .svg or .png"
    )
    group.add_argument(
        "--page", type=Path, metavar="FILE.md", help="write a page in Markdown, its chart beside it"
    )
    group.add_argument(
        "--compare",
        type=Path,
        metavar="OLD.json",
        help="exit 1 if a cell is slower beside its peers than it was there, beyond the noise",
    )
    group.add_argument(
        "--check", action="store_true", help="exit 1 if a figure is beyond the limit promised"
    )


def run(arguments: argparse.Namespace) -> int:
    """Measure, print, save; return 1 if any result was wrong or any figure beyond its limit."""
    require_extra("bench", "rich")
    if arguments.nets is not None:
        return _run_nets(arguments)
    if _OVERHEAD in _suites(arguments):
        return _run_overhead(arguments)
    from convcore.bench.cell import Outcome
    from convcore.bench.process import WorkerError

    request, files, outcome = _request(arguments), _files(arguments), Outcome()
    before = _older_run(arguments.compare)
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
            all_well = _finish(console, request, outcome, machine, arguments.check)
            _save(console, files, outcome, request, machine)
    if before is not None:
        all_well &= _compare(console, before, outcome, request, machine, arguments.compare)
    return 0 if all_well else 1


def _console(request: Request) -> Console:
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        # A file has no width; the table has.
        console.width = 130 + 18 * len(request.peers)
    return console


def _run_overhead(arguments: argparse.Namespace) -> int:
    """Time small operations; return 1 if a result was wrong or a worker failed."""
    from rich.console import Console

    from convcore.bench import overhead, report
    from convcore.bench.cell import Outcome
    from convcore.bench.process import WorkerError

    if _suites(arguments) != (_OVERHEAD,) or arguments.layer:
        raise UsageError("--suite overhead measures operations, not layers: give it alone")
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


def _run_nets(arguments: argparse.Namespace) -> int:
    """Time whole nets; return 1 if a result was wrong or a worker failed."""
    from rich.console import Console

    from convcore.bench.nets import measure, report
    from convcore.bench.nets.catalogue import NETS, TASKS, net_named
    from convcore.bench.process import WorkerError
    from convcore.engine.cpus import cpu_limit

    if arguments.suite or arguments.layer:
        raise UsageError("--nets measures whole nets, not layers: give it without --suite, --layer")
    try:
        nets = [net_named(name) for name in arguments.nets] or NETS
    except ValueError as error:
        raise UsageError(f"--nets: {error}") from None
    asked = tuple(peer for peer in _peers(arguments.peers) if peer in measure.PEERS)
    rounds = arguments.rounds or (_QUICK_ROUNDS if arguments.quick else _ROUNDS)
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 80 + 50 * len(asked)  # a file has no width; the table has
    cells: list[Any] = []
    try:
        for threads in arguments.threads or (cpu_limit(),):
            for cell in measure.measure(
                *(os.environ, nets, TASKS, asked, threads, rounds),
                *(arguments.isa, arguments.env == "keep"),
            ):
                cells.append(cell)
                report.print_progress(console, cell)
    except WorkerError as error:
        print(f"convcore bench: {error}", file=sys.stderr)
        return 1
    finally:  # after Ctrl-C too
        if cells:
            report.print_cells(console, cells, asked, rounds)
            if arguments.json:
                text = json.dumps([report.as_data(cell) for cell in cells], indent=1)
                arguments.json.write_text(text + "\n", encoding="utf-8")
    return 1 if any(cell.wrong for cell in cells) else 0


def _save_costs(file: Path, costs: Sequence[Cost]) -> None:
    data = [
        {"operation": c.operation.name, "limit_us": c.operation.limit, "seconds": c.seconds}
        for c in costs
    ]
    file.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def _request(arguments: argparse.Namespace) -> Request:
    """Return what the arguments ask for."""
    from convcore.bench.request import Request
    from convcore.bench.suites import layers_of
    from convcore.engine.cpus import cpu_limit

    if arguments.env == "keep" and arguments.isa != "native":
        raise UsageError("--isa sets variables and --env keep leaves them: give one of the two")
    suites = _suites(arguments)
    return Request(
        layers=tuple(dict.fromkeys((*layers_of(suites), *_layers(arguments.layer or ())))),
        maps=arguments.maps,
        formats=arguments.formats,
        threads=arguments.threads or tuple(sorted({1, cpu_limit()})),
        peers=_peers(arguments.peers, arguments.quick),
        rounds=arguments.rounds or (_QUICK_ROUNDS if arguments.quick else _ROUNDS),
        dtypes=arguments.dtypes,
        suites=suites,
        budget=_QUICK_SECONDS if arguments.quick else None,
        isa=arguments.isa,
        strict=arguments.strict,
        keep=arguments.env == "keep",
        seed=arguments.seed,
    )


def _suites(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Return the suites asked for; quick if neither a suite nor a layer was."""
    from convcore.bench.suites import SUITES

    asked = tuple(dict.fromkeys(name for names in arguments.suite or () for name in names))
    for name in asked:
        if name not in SUITES and name != _OVERHEAD:
            raise UsageError(f"--suite: {name!r} is none of {', '.join((*SUITES, _OVERHEAD))}")
    return asked or (() if arguments.layer else ("quick",))


def _layers(specs: Sequence[str]) -> tuple[Layer, ...]:
    try:
        return tuple(parse_layer(spec) for spec in specs)
    except ValueError as error:
        raise UsageError(f"--layer: {error}") from None


def _peers(asked: tuple[str, ...] | None, quick: bool = False) -> tuple[str, ...]:
    """Return the peers asked for, or those that are installed and not too slow."""
    from convcore.bench.peers import PEERS, QUICK, SLOW, is_installed

    known = [name for name in PEERS if name != "convcore"]
    if asked is None:
        usual = QUICK if quick else [name for name in known if name not in SLOW]
        return tuple(filter(is_installed, usual))
    if asked == ("none",):
        return ()
    for name in asked:
        if name not in known:
            raise UsageError(f"--peers: {name!r} is none of {', '.join(known)}")
        if not is_installed(name):
            lacking = " and ".join(m for m in PEERS[name][0])
            raise UsageError(f"--peers: {name} is not installed (it needs {lacking})")
    return asked


def _files(arguments: argparse.Namespace) -> Files:
    """Return where to save what; whatever could not be saved is refused before anything runs."""
    from convcore.bench.saving import Files

    files = Files(arguments.json, arguments.csv, arguments.plot, arguments.page)
    for option, file in files.asked():
        if not file.absolute().parent.is_dir():
            raise UsageError(f"--{option}: there is no directory {file.parent}")
    if files.plot or files.page:
        require_extra("bench", "matplotlib")
    if files.plot:
        from convcore.bench.chart import is_drawable

        if not is_drawable(files.plot):
            raise UsageError(f"--plot: cannot write a picture as {files.plot.name!r}, .svg is one")
    return files


def _older_run(file: Path | None) -> dict[str, Any] | None:
    """Read the run to compare with, before anything is measured."""
    from convcore.bench.compare import check_readable
    from convcore.bench.record import VERSION

    if file is None:
        return None
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        check_readable(data, VERSION)
    except OSError as error:
        raise UsageError(f"--compare: {error}") from None
    except ValueError as error:
        raise UsageError(f"--compare: {file} {error}") from None
    return data


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
    from convcore.engine.cpus import cpu_limit

    follow(run_bench(request, os.environ, outcome, min(cpu_limit(), _MOST_ORACLES)))


def _finish(
    console: Console, request: Request, outcome: Outcome, machine: Mapping[str, Any], check: bool
) -> bool:
    """Print the report; return whether all results are right and, if asked, all promises kept."""
    from convcore.bench import report
    from convcore.bench.promises import promises

    found = promises(outcome, request)
    report.print_workers(console, outcome, machine["cpu"])
    report.print_cells(console, outcome, request)
    report.print_promises(console, found)
    report.print_summary(console, outcome, request)
    kept = all(promise.kept for promise in found)
    if check:
        console.print("All figures are within their limits." if kept else "A limit is not kept.")
    return not outcome.wrong and (kept or not check)


def _save(
    console: Console,
    files: Files,
    outcome: Outcome,
    request: Request,
    machine: Mapping[str, Any],
) -> None:
    from convcore.bench.saving import save

    command = shlex.join(["convcore", *sys.argv[1:]])
    for line in save(files, outcome, request, machine, command):
        console.print(line, markup=False)


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
    from convcore.bench.compare import compare
    from convcore.bench.record import as_data

    # Through JSON's own text, so that both have what the older has been through.
    after = json.loads(json.dumps(as_data(outcome, request, machine)))
    comparison = compare(before, after)
    if not comparison.changes:
        raise UsageError(f"--compare: {file} has no cell and peer in common with this run")
    report.print_comparison(console, comparison, file.name)
    return not comparison.regressions


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
