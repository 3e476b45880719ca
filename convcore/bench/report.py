"""Reports for a terminal, drawn with rich."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from convcore.bench import busy, tables
from convcore.bench.measuring import Quartiles, quartiles
from convcore.bench.nets import NetCell
from convcore.bench.overhead import Cost
from convcore.bench.peers import OURS, title
from convcore.bench.promises import Promise
from convcore.bench.records import TOLERANCE, Change, Comparison
from convcore.bench.results import (
    Cell,
    Outcome,
    Request,
    counted,
    errors_by_algorithm,
    milliseconds,
    quartile_range,
    short,
    verdict,
    whole,
)
from convcore.bench.tables import Rows

# What a table puts between two columns.
_GAP = 3
# A comparison shows so many cells each way; the rest are only counted.
_MOST_CHANGES = 20
# Columns of text; those that may be long give way in a narrow terminal.  All others are numbers.
_SHORT = frozenset(("pass", "format", "dtype", "task", "peer", "over", "library", "net"))
_LONG = frozenset(
    ("layer", "algorithm", "loaded", "variables", "worker", "which", "figure", "worst", "cell",
     "sweep", "operation", "workload")
)  # fmt: skip


def print_workers(console: Console, outcome: Outcome, cpu: str) -> None:
    """Print the CPU, and of every worker what was loaded in it and the variables that matter."""
    console.print(f"CPU: {cpu}", highlight=False)
    if speeds := tables.peaks(outcome):
        console.print(f"Peak, a large matrix product: {speeds}. {tables.ABOVE_PEAK}")
    _print(console, "", tables.workers(outcome))


def print_cells(console: Console, outcome: Outcome, request: Request) -> None:
    """Print a row a cell: convcore's time and speed, peers' times over convcore's, the error.

    Small cells, whose time is what a call costs, are a table of their own.
    """
    large = [cell for cell in outcome.cells if not cell.small]
    if large:
        _print_cells(console, large, outcome, request)
    if small := [cell for cell in outcome.cells if cell.small]:
        console.print("Cells that take PyTorch under 50 us:")
        _print_cells(console, small, outcome, request)


def print_summary(console: Console, outcome: Outcome, request: Request) -> None:
    """Print geometric means and the worst cells, errors, growth, what failed, and the verdict."""
    caption = "Geometric means; above 1, convcore is faster:"
    _print(console, caption, tables.layer_means(outcome, request))
    errors: Rows = [
        (algorithm or "?", dtype, f"{error:.2f}", f"{allowed:g}")
        for (algorithm, dtype), (error, allowed) in errors_by_algorithm(outcome).items()
    ]
    _print(console, "", (("algorithm", "dtype", "largest error, eps", "allowed"), errors))
    if request.is_real:
        _print(console, "The twenty lowest:", tables.slowest_cells(outcome, request))
    if "scaling" in request.suites:
        caption = "Time follows the power of the number of pixels; 1 is linear:"
        _print(console, caption, tables.growth(outcome))
    _print_end(console, outcome)


def _print_end(console: Console, outcome: Outcome) -> None:
    """Print what failed, and the verdict."""
    for cell in outcome.cells:
        for text in _faults(cell):
            console.print(f"{cell.name}: {text}", style="bold red", highlight=False, markup=False)
    if not outcome.finished:
        console.print("Interrupted: the rest was not measured.", style="bold")
    style = "bold red" if outcome.wrong else "bold green"
    console.print(verdict(outcome), style=style, highlight=False)


def print_brief(
    console: Console, outcome: Outcome, request: Request, cpu: str, found: Sequence[Promise]
) -> None:
    """Print what fits a screen: the CPU, geometric means, what failed, and the verdict."""
    console.print(f"CPU: {cpu}", highlight=False)
    caption = "Geometric means; above 1, convcore is faster:"
    _print(console, caption, tables.layer_means(outcome, request))
    if missed := [promise for promise in found if not promise.kept]:
        _print(console, "Promises that are missed:", tables.limits(missed))
    console.print("Each cell, its algorithm and its error: --details", highlight=False)
    _print_end(console, outcome)


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
        _print(console, f"{heading}:", (("cell", "peer", "before", "now"), _change_rows(found)))


def print_promises(console: Console, found: Sequence[Promise]) -> None:
    """Print a row a promise: the figure, its limit, whether it is kept, the worst cell."""
    _print(console, "What is promised, and what was measured:", tables.limits(found))


def print_costs(console: Console, costs: Sequence[Cost], peers: Sequence[str]) -> None:
    """Print a row an operation: microseconds a call, by library, and what is promised."""
    rows: Rows = []
    for cost in costs:
        times = [f"{1e6 * quartiles(cost.seconds[peer]).median:.1f}" for peer in (OURS, *peers)]
        limit = cost.operation.limit
        promise = "" if limit is None else f"{limit:g}" + ("" if cost.kept else " (missed)")
        rows.append((cost.operation.name, *times, promise))
    headings = ("operation", "convcore", *map(title, peers), "promised")
    _print(console, "Microseconds a call, one thread, median of the rounds:", (headings, rows))
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
    """Print a row a net and task, a row a library and format, geometric means, what was wrong."""
    caption = f"Median of {rounds} rounds in turn; each in its better format; above 1, ours leads:"
    _print(console, caption, tables.nets(cells, peers))
    _print(console, "Every library and format:", tables.variants(cells))
    _print(console, "Geometric means:", tables.net_means(cells, peers))
    for cell in cells:
        if cell.wrong:
            console.print(
                f"Results differ by {cell.error():.1e}: {cell.net.name}, {cell.task}", style="red"
            )


def print_busy(console: Console, rows: Sequence[busy.Row], loads: Sequence[busy.Load]) -> None:
    """Print a row a workload and library: the slowest trial beside each load, and its slowdown."""
    _print(
        console,
        "Median milliseconds of the slowest trial, and over those of the quiet machine; beside:",
        tables.busy(rows, loads),
    )
    for row in rows:
        if row.failed:
            console.print(f"{title(row.peer)} left out: {row.failed}", style="red", markup=False)


def _print(console: Console, caption: str, table: tables.Table) -> None:
    """Print a table that has rows, and before it what it shows."""
    headings, rows = table
    if not rows:
        return
    if caption:
        console.print(caption)
    drawn = _table(headings)
    for row in rows:
        drawn.add_row(*row)
    _print_table(console, drawn, headings, rows)


def _print_table(console: Console, drawn: Table, headings: Sequence[str], rows: Rows) -> None:
    """Print a table; in a terminal too narrow for its words, a row as a block of lines."""
    if _least_width(headings, rows) <= console.width:
        console.print(drawn)
        return
    for row in rows:
        block = Table.grid(padding=(0, 2))
        for heading, text in zip(headings, row, strict=False):
            if text:
                block.add_row(f"[dim]{heading}[/]", text)
        console.print(block)
        console.print()


def _least_width(headings: Sequence[str], rows: Rows) -> int:
    """Return the width below which a table would break words, or numbers."""
    width = 0
    for heading, *texts in zip_longest(headings, *rows, fillvalue=""):
        plain = [Text.from_markup(text).plain for text in (heading, *texts)]
        parts = [text.split() if heading in _LONG else [text] for text in plain]
        width += _GAP + max((len(part) for some in parts for part in some), default=0)
    return width


def _table(headings: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in headings:
        is_text = name in _SHORT or name in _LONG
        side = "left" if is_text else "right"
        table.add_column(name, justify=side, no_wrap=name not in _LONG, overflow="fold")
    return table


def _print_cells(
    console: Console, cells: Sequence[Cell], outcome: Outcome, request: Request
) -> None:
    peers = [f"{title(peer)}\n/ convcore" for peer in request.peers]
    dtype = ["dtype"] if len(request.dtypes) > 1 else []
    numbers = ["threads", "ms", "GFLOP/s", "% of\npeak", *peers, "error,\neps"]
    headings = ["layer", "pass", "format", *dtype, "algorithm", *numbers]
    drawn = _table(headings)
    before = None
    for cell in cells:
        if before not in (None, cell.layer.name):
            drawn.add_section()
        drawn.add_row(*_row(cell, outcome, request, first=before != cell.layer.name))
        before = cell.layer.name
    rows = [_row(cell, outcome, request, first=True) for cell in cells]
    _print_table(console, drawn, [name.replace("\n", " ") for name in headings], rows)


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


def _change_rows(changes: Sequence[Change]) -> Rows:
    rows: Rows = []
    for change in changes[:_MOST_CHANGES]:
        both = (Quartiles(**change.before), Quartiles(**change.after))
        rows.append((change.cell, title(change.peer), *map(_ratio, both)))
    if len(changes) > _MOST_CHANGES:
        rows.append((f"... and {len(changes) - _MOST_CHANGES} more",))
    return rows


def _faults(cell: Cell) -> Iterator[str]:
    """Yield what went wrong in a cell, a sentence each."""
    for peer, error in cell.errors.items():
        if peer in cell.wrong and peer not in cell.problems:
            allowed = cell.allowed(peer)
            yield f"{title(peer)}'s result is off by {error:.3g} eps, {allowed:g} are allowed"
    yield from cell.problems.values()


def _ratio(ratio: Quartiles | None) -> str:
    """Return the median and the quartiles; styled by whether convcore is ahead."""
    if ratio is None:
        return ""
    style = "green" if ratio.median >= 1 else "yellow"
    return f"[{style}]{ratio.median:.2f}[/] [dim]{quartile_range(ratio)}[/]"
