"""Tables for a terminal, drawn with rich."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table

from convcore.bench.measuring import Quartiles, geometric_mean, quartiles
from convcore.bench.nets import TASKS, NetCell
from convcore.bench.overhead import Cost
from convcore.bench.peers import OURS, title
from convcore.bench.promises import Promise
from convcore.bench.records import TOLERANCE, Change, Comparison
from convcore.bench.results import (
    Cell,
    Mean,
    Outcome,
    Request,
    counted,
    errors_by_algorithm,
    growths,
    means,
    mebibytes,
    milliseconds,
    quartile_range,
    short,
    verdict,
    whole,
)

# A comparison shows so many cells each way; the rest are only counted.
_MOST_CHANGES = 20


def print_workers(console: Console, outcome: Outcome, cpu: str) -> None:
    """Print the CPU, and of every worker what was loaded in it and the variables that matter."""
    console.print(f"CPU: {cpu}", highlight=False)
    for threads, peaks in outcome.peaks.items():
        speeds = ", ".join(f"{gflops:.0f} GFLOP/s in {dtype}" for dtype, gflops in peaks.items())
        console.print(f"Peak, a large matrix product on {counted(threads)}: {speeds}")
    table = _table(fold=("worker", "threads", "kernel", "loaded", "variables"))
    table.add_column("peak memory", justify="right")
    for key, about in outcome.workers.items():
        loaded = dict(about["loaded"])
        kernel = loaded.pop("kernel", "?")
        table.add_row(
            title(key.partition("@")[0]),
            str(about["threads"]),
            kernel,
            _listed(loaded),
            _listed(about["variables"], "="),
            mebibytes(about.get("peak_bytes")),
        )
    console.print(table)


def print_cells(console: Console, outcome: Outcome, request: Request) -> None:
    """Print a row a cell: convcore's time and speed, peers' times over convcore's, the error.

    Small cells, whose time is what a call costs, are a table of their own.
    """
    large = [cell for cell in outcome.cells if not cell.small]
    if large:
        console.print(_cell_table(large, outcome, request))
    if small := [cell for cell in outcome.cells if cell.small]:
        console.print("Cells that take PyTorch under 50 us:")
        console.print(_cell_table(small, outcome, request))


def print_summary(console: Console, outcome: Outcome, request: Request) -> None:
    """Print geometric means and the worst cells, errors, growth, what failed, and the verdict."""
    if found := means(outcome, request):
        console.print("Geometric means; above 1, convcore is faster:")
        console.print(_means_table(found, request))
    for mean in found:
        if mean.kind == "all cells":
            console.print(
                f"Worst cell against {title(mean.peer)}: {mean.worst:.2f} ({mean.worst_cell})",
                highlight=False,
            )
    if outcome.cells:
        rows = (
            (algorithm or "?", dtype, f"{error:.2f}", f"{allowed:g}")
            for (algorithm, dtype), (error, allowed) in errors_by_algorithm(outcome).items()
        )
        right = ("largest error, eps", "allowed")
        console.print(_table(rows, plain=("algorithm", "dtype"), right=right))
    if "scaling" in request.suites:
        console.print("Time follows the power of the number of pixels; 1 is linear:")
        console.print(_growth_table(outcome))
    for cell in outcome.cells:
        for text in _faults(cell):
            console.print(f"{cell.name}: {text}", style="bold red", highlight=False, markup=False)
    if not outcome.finished:
        console.print("Interrupted: the rest was not measured.", style="bold")
    style = "bold red" if outcome.wrong else "bold green"
    console.print(verdict(outcome), style=style, highlight=False)


def print_comparison(console: Console, comparison: Comparison, file: str) -> None:
    """Print what has become slower and faster since another run."""
    for warning in comparison.warnings:
        console.print(f"Compared with another setting: {warning}", style="yellow", highlight=False)
    changes = comparison.changes
    console.print(
        f"Beside {file}: {len(changes)} ratios, {comparison.mean:.3f} times the older ones in "
        f"geometric mean; {len(comparison.regressions)} are lower and "
        f"{len(comparison.improvements)} higher beyond the noise (quartiles apart and "
        f"{TOLERANCE:.0%} between medians).",
        highlight=False,
    )
    for heading, found in (
        ("Slower than before", comparison.regressions),
        ("Faster than before", comparison.improvements),
    ):
        if found:
            console.print(f"{heading}:")
            console.print(_changes_table(found))


def _cell_table(cells: Sequence[Cell], outcome: Outcome, request: Request) -> Table:
    # Layer: the one column that gives way in a narrow terminal, as most of its cells are empty.
    table = _table(fold=("layer",))
    several = len(request.dtypes) > 1
    for name in ("pass", "format", *(("dtype",) if several else ())):
        table.add_column(name, no_wrap=True)
    table.add_column("algorithm", overflow="fold")
    peers = [f"{title(peer)}\n/ convcore" for peer in request.peers]
    _add_numbers(table, "threads", "ms", "GFLOP/s", "% of\npeak", *peers, "error,\neps")
    before = None
    for cell in cells:
        if before not in (None, cell.layer.name):
            table.add_section()
        table.add_row(*_row(cell, outcome, request, first=before != cell.layer.name))
        before = cell.layer.name
    return table


def _row(cell: Cell, outcome: Outcome, request: Request, first: bool) -> list[str]:
    ours = cell.seconds.get(OURS)
    error = cell.errors.get(OURS, math.nan)
    mark = "[bold red]{:.2f} WRONG[/]" if OURS in cell.wrong else "{:.2f}"
    return [
        cell.layer.name if first else "",
        short(cell.pass_name),
        short(cell.format),
        *([cell.dtype] if len(request.dtypes) > 1 else []),
        cell.algorithm,
        str(cell.threads),
        milliseconds(quartiles(ours).median) if ours else "-",
        whole(cell.gflops),
        whole(outcome.percent_of_peak(cell)),
        *(_ratio(cell.ratio(peer)) for peer in request.peers),
        mark.format(error),
    ]


def _means_table(found: list[Mean], request: Request) -> Table:
    table = _table(right=[f"{title(peer)} / convcore" for peer in request.peers], names=("over",))
    by_key = {(mean.kind, mean.peer): mean for mean in found}
    for kind in dict.fromkeys(mean.kind for mean in found):
        entries = [by_key.get((kind, peer)) for peer in request.peers]
        cells = ["-" if m is None else f"{m.value:.2f}, worst {m.worst:.2f}" for m in entries]
        table.add_row(short(kind), *cells)
    return table


def _growth_table(outcome: Outcome) -> Table:
    right = ("threads", "power", "ns a pixel, first to last")
    table = _table(plain=("sweep", "pass", "format"), right=right)
    for growth in growths(outcome):
        paces = [1e9 * s / n for n, s in zip(growth.sizes, growth.seconds, strict=True)]
        table.add_row(
            growth.sweep,
            short(growth.pass_name),
            short(growth.format),
            str(growth.threads),
            f"{growth.exponent:.2f}",
            " ".join(f"{pace:.3g}" for pace in paces),
        )
    return table


def _changes_table(changes: Sequence[Change]) -> Table:
    table = _table(fold=("cell",), plain=("peer",), numbers=("before", "now"))
    for change in changes[:_MOST_CHANGES]:
        both = (Quartiles(**change.before), Quartiles(**change.after))
        table.add_row(change.cell, title(change.peer), *map(_ratio, both))
    if len(changes) > _MOST_CHANGES:
        table.add_row(f"... and {len(changes) - _MOST_CHANGES} more")
    return table


def _faults(cell: Cell) -> Iterator[str]:
    """Yield what went wrong in a cell, a sentence each."""
    for peer, error in cell.errors.items():
        if peer in cell.wrong and peer not in cell.problems:
            allowed = cell.allowed(peer)
            yield f"{title(peer)}'s result is off by {error:.3g} eps, {allowed:g} are allowed"
    yield from cell.problems.values()


def print_promises(console: Console, found: Sequence[Promise]) -> None:
    """Print a row a promise: the figure, its limit, whether it is kept, the worst cell."""
    if not found:
        return
    console.print("What is promised, and what was measured:")
    table = _table(fold=("figure",), numbers=("is", "limit", "kept"))
    table.add_column("worst", overflow="fold")
    for promise in found:
        kept = "[green]yes[/]" if promise.kept else "[bold red]no[/]"
        table.add_row(promise.text, promise.value, promise.limit, kept, promise.worst)
    console.print(table)


def print_costs(console: Console, costs: Sequence[Cost], peers: Sequence[str]) -> None:
    """Print a row an operation: microseconds a call, by library, and what is promised."""
    console.print("Microseconds a call, one thread, median of the rounds:")
    table = _table(plain=("operation",), numbers=("convcore", *map(title, peers), "promised"))
    for cost in costs:
        times = [f"{1e6 * quartiles(cost.seconds[peer]).median:.1f}" for peer in (OURS, *peers)]
        limit = cost.operation.limit
        promise = "" if limit is None else f"{limit:g}" + ("" if cost.kept else " (missed)")
        table.add_row(cost.operation.name, *times, promise)
    console.print(table)
    for cost in costs:
        if cost.wrong:
            console.print(f"Results differ: {cost.operation.name}", style="red")


def print_net(console: Console, cell: NetCell) -> None:
    """Print that a net's task is done, and which libraries failed in it."""
    took = milliseconds(cell.median(OURS))
    console.print(f"{cell.net.name}, {cell.task}, {counted(cell.threads)}: {took} ms")
    for peer, reason in cell.failed.items():
        console.print(f"  {title(peer)} left out: {reason}", style="red", markup=False)


def print_nets(
    console: Console, cells: Sequence[NetCell], peers: Sequence[str], rounds: int
) -> None:
    """Print a row a net and task, geometric means, and what was wrong."""
    console.print(
        f"Milliseconds, median of {rounds} rounds taken in turn, each side's better format; "
        "above 1, convcore is faster:"
    )
    numbers = ["threads", "convcore", "format", "MiB"]
    for peer in peers:
        numbers += [title(peer), "format", "MiB", "ratio", "quartiles"]
    table = _table(plain=("net", "task"), numbers=numbers)
    for cell in cells:
        texts = [cell.net.name, cell.task, str(cell.threads), *_net_columns(cell, OURS)]
        for peer in peers:
            ratio = cell.ratio(peer)
            both = ["-", ""] if ratio is None else [f"{ratio.median:.2f}", quartile_range(ratio)]
            texts += [*_net_columns(cell, peer), *both]
        table.add_row(*texts)
    console.print(table)
    for peer in peers:
        for task in TASKS:
            found = [cell.ratio(peer) for cell in cells if cell.task == task]
            ratios = [ratio.median for ratio in found if ratio is not None]
            if ratios:
                mean, worst = geometric_mean(ratios), min(ratios)
                console.print(f"{title(peer)}, {task}: {mean:.2f}, worst {worst:.2f}")
    for cell in cells:
        if cell.wrong:
            console.print(
                f"Results differ by {cell.error():.1e}: {cell.net.name}, {cell.task}", style="red"
            )


def _net_columns(cell: NetCell, peer: str) -> list[str]:
    """Return a library's milliseconds, its better format and the memory that it takes."""
    variant = cell.best(peer)
    if variant is None:
        return ["-", "", ""]
    return [milliseconds(cell.median(peer)), short(variant[1]), mebibytes(cell.peak_bytes[variant])]


def _table(
    rows: Iterable[Sequence[RenderableType]] = (),
    fold: Iterable[str] = (),
    names: Iterable[str] = (),
    plain: Iterable[str] = (),
    right: Iterable[str] = (),
    numbers: Iterable[str] = (),
) -> Table:
    """Return a table with columns of these headings, in this order."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in fold:
        table.add_column(name, overflow="fold")
    for name in names:
        table.add_column(name, no_wrap=True)
    for name in plain:
        table.add_column(name)
    for name in right:
        table.add_column(name, justify="right")
    _add_numbers(table, *numbers)
    for row in rows:
        table.add_row(*row)
    return table


def _add_numbers(table: Table, *headings: str) -> None:
    for name in headings:
        table.add_column(name, justify="right", no_wrap=True)


def _ratio(ratio: Quartiles | None) -> str:
    """Return the median and the quartiles; styled by whether convcore is ahead."""
    if ratio is None:
        return ""
    style = "green" if ratio.median >= 1 else "yellow"
    return f"[{style}]{ratio.median:.2f}[/] [dim]{quartile_range(ratio)}[/]"


def _listed(pairs: Mapping[str, str], between: str = " ") -> str:
    return ", ".join(f"{name}{between}{value}" for name, value in pairs.items()) or "-"
