"""Tables for a terminal, drawn with rich."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from convcore.bench.overhead import Cost
from convcore.bench.pairing import Spread, spread
from convcore.bench.peers import ALLOWED_EPS, title
from convcore.bench.record import Mean, means, verdict, worst
from convcore.bench.request import Request
from convcore.bench.runner import OURS, Cell, Outcome

_SHORT = {
    "forward": "forward",
    "input_grad": "input grad",
    "weight_grad": "weight grad",
    "contiguous": "NCHW",
    "channels_last": "NHWC",
}


def print_workers(console: Console, outcome: Outcome, cpu: str) -> None:
    """Print the CPU, and of every worker what was loaded in it and the variables that matter."""
    console.print(f"CPU: {cpu}", highlight=False)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("worker", "threads", "kernel", "loaded", "variables"):
        table.add_column(name, overflow="fold")
    for key, about in outcome.workers.items():
        loaded = dict(about["loaded"])
        kernel = loaded.pop("kernel", "?")
        table.add_row(
            title(key.partition("@")[0]),
            str(about["threads"]),
            kernel,
            _listed(loaded),
            _listed(about["variables"], "="),
        )
    console.print(table)


def print_cells(console: Console, outcome: Outcome, request: Request) -> None:
    """Print a row a cell: convcore's time and speed, peers' times over convcore's, the error."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    # The one column that gives way in a narrow terminal: most of its cells are empty.
    table.add_column("layer", overflow="fold")
    table.add_column("map", no_wrap=True)
    table.add_column("format", no_wrap=True)
    for name in ("threads", "ms", "GFLOP/s"):
        table.add_column(name, justify="right", no_wrap=True)
    for peer in request.peers:
        table.add_column(f"{title(peer)}\n/ convcore", justify="right", no_wrap=True)
    table.add_column("error,\neps", justify="right", no_wrap=True)
    before = None
    for cell in outcome.cells:
        if before not in (None, cell.layer.name):
            table.add_section()
        table.add_row(*_row(cell, request, first=before != cell.layer.name))
        before = cell.layer.name
    console.print(table)


def print_costs(console: Console, costs: Sequence[Cost], peers: Sequence[str]) -> None:
    """Print a row an operation: microseconds a call, by library, and what is promised."""
    console.print("Microseconds a call, one thread, median of the rounds:")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("operation")
    for name in ("convcore", *map(title, peers), "promised"):
        table.add_column(name, justify="right", no_wrap=True)
    for cost in costs:
        times = [f"{1e6 * spread(cost.seconds[peer]).median:.1f}" for peer in (OURS, *peers)]
        limit = cost.operation.limit
        promise = "" if limit is None else f"{limit:g}" + ("" if cost.kept else " (missed)")
        table.add_row(cost.operation.name, *times, promise)
    console.print(table)
    for cost in costs:
        if cost.wrong:
            console.print(f"Results differ: {cost.operation.name}", style="red")


def print_summary(console: Console, outcome: Outcome, request: Request) -> None:
    """Print geometric means, the worst cells, what failed, and whether all results were right."""
    found = means(outcome, request)
    if found:
        console.print("Geometric means over dense layers; above 1, convcore is faster:")
        console.print(_means_table(found, request))
    for peer in request.peers:
        if (lowest := worst(outcome, peer)) is not None:
            cell, ratio = lowest
            console.print(
                f"Worst dense cell against {title(peer)}: {ratio:.2f} ({cell.name})",
                highlight=False,
            )
    for cell in outcome.cells:
        for text in _faults(cell):
            console.print(f"{cell.name}: {text}", style="bold red", highlight=False, markup=False)
    if not outcome.finished:
        console.print("Interrupted: the rest was not measured.", style="bold")
    style = "bold red" if outcome.wrong else "bold green"
    console.print(verdict(outcome), style=style, highlight=False)


def _row(cell: Cell, request: Request, first: bool) -> list[str]:
    ours = cell.seconds.get(OURS)
    error = cell.errors.get(OURS, math.nan)
    mark = "[bold red]{:.2f} WRONG[/]" if OURS in cell.wrong else "{:.2f}"
    return [
        cell.layer.name if first else "",
        _SHORT[cell.map],
        _SHORT[cell.format],
        str(cell.threads),
        _milliseconds(spread(ours).median) if ours else "-",
        f"{cell.gflops:.0f}" if ours else "-",
        *(_ratio(cell.ratio(peer)) for peer in request.peers),
        mark.format(error),
    ]


def _means_table(found: list[Mean], request: Request) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("over", no_wrap=True)
    for peer in request.peers:
        table.add_column(f"{title(peer)} / convcore", justify="right")
    by_key = {(mean.kind, mean.peer): mean for mean in found}
    for kind in dict.fromkeys(mean.kind for mean in found):
        entries = [by_key.get((kind, peer)) for peer in request.peers]
        cells = ["-" if mean is None else f"{mean.value:.2f}" for mean in entries]
        table.add_row(_SHORT.get(kind, kind), *cells)
    return table


def _faults(cell: Cell) -> list[str]:
    """Return what went wrong in a cell, a sentence each."""
    off = [
        f"{title(peer)}'s result is off by {error:.3g} eps, {ALLOWED_EPS[peer]:g} are allowed"
        for peer, error in cell.errors.items()
        if peer in cell.wrong and peer not in cell.problems
    ]
    return off + list(cell.problems.values())


def _ratio(ratio: Spread | None) -> str:
    """Return the median and the quartiles; styled by whether convcore is ahead."""
    if ratio is None:
        return ""
    style = "green" if ratio.median >= 1 else "yellow"
    return f"[{style}]{ratio.median:.2f}[/] [dim]{ratio.low:.2f}-{ratio.high:.2f}[/]"


def _milliseconds(seconds: float) -> str:
    """Return three significant digits, without an exponent."""
    value = 1e3 * seconds
    return f"{value:.{max(0, 2 - math.floor(math.log10(value)))}f}"


def _listed(pairs: Mapping[str, str], between: str = " ") -> str:
    return ", ".join(f"{name}{between}{value}" for name, value in pairs.items()) or "-"
