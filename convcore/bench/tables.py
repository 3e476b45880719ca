"""The tables that terminal reports and Markdown pages share: headings, and rows of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from convcore.bench.busy import Load, Row
from convcore.bench.measuring import geometric_mean, quartiles
from convcore.bench.nets import TASKS, NetCell
from convcore.bench.peers import OURS, title
from convcore.bench.promises import Promise
from convcore.bench.results import (
    GOOD,
    Outcome,
    Request,
    counted,
    growths,
    means,
    mebibytes,
    median_and_quartiles,
    milliseconds,
    short,
    slowest,
)

Rows = list[Sequence[str]]
Table = tuple[Sequence[str], Rows]


# Said where shares of the peak are shown.
ABOVE_PEAK = (
    "GFLOP/s count the multiplications of the definition: Winograd's method does fewer of them, "
    "and may get above 100 % of the peak."
)


def peaks(outcome: Outcome) -> str:
    """Return the speeds of a large matrix product, by threads and dtype."""
    return ", ".join(
        f"{gflops:.0f} GFLOP/s in {dtype} on {counted(threads)}"
        for threads, by_dtype in outcome.peaks.items()
        for dtype, gflops in by_dtype.items()
    )


def workers(outcome: Outcome) -> Table:
    """Return a row a worker: what was loaded in it, the variables that matter, its memory."""
    rows: Rows = [
        (
            title(key.partition("@")[0]),
            str(about["threads"]),
            ", ".join(f"{name} {value}" for name, value in about["loaded"].items()),
            ", ".join(f"{name}={value}" for name, value in about["variables"].items()),
            mebibytes(about.get("peak_bytes")),
        )
        for key, about in outcome.workers.items()
    ]
    return ("worker", "threads", "loaded", "variables", "peak memory"), rows


def layer_means(outcome: Outcome, request: Request) -> Table:
    """Return a row a peer and kind of cells: the geometric mean of the ratios, and the lowest."""
    rows: Rows = [
        (title(m.peer), short(m.kind), f"{m.value:.2f}", str(m.cells), f"{m.share:.0%}",
         f"{m.worst:.2f}", m.worst_cell)
        for m in means(outcome, request)
    ]  # fmt: skip
    return ("peer", "over", "mean", "cells", f"{GOOD} or more", "lowest", "which"), rows


def slowest_cells(outcome: Outcome, request: Request) -> Table:
    """Return the twenty lowest ratios: where, the ratio, our time, what we computed by."""
    rows: Rows = [
        (title(peer), ratio.name, f"{ratio.quartiles.median:.2f}",
         milliseconds(ratio.ours.median(OURS)), ratio.ours.algorithm)
        for peer, ratio in slowest(outcome, request)
    ]  # fmt: skip
    return ("peer", "which", "ratio", "ms", "algorithm"), rows


def growth(outcome: Outcome) -> Table:
    """Return a row a sweep, pass, format and number of threads: the power that time follows."""
    rows: Rows = []
    for line in growths(outcome):
        paces = (1e9 * s / n for n, s in zip(line.sizes, line.seconds, strict=True))
        kind = (line.sweep, short(line.pass_name), short(line.format), str(line.threads))
        rows.append((*kind, f"{line.exponent:.2f}", " ".join(f"{pace:.3g}" for pace in paces)))
    return ("sweep", "pass", "format", "threads", "power", "ns a pixel, first to last"), rows


def limits(found: Sequence[Promise]) -> Table:
    """Return a row a promise: the figure, its limit, whether it is kept, the worst cell."""
    rows: Rows = [(p.text, p.value, p.limit, "yes" if p.kept else "NO", p.worst) for p in found]
    return ("figure", "is", "limit", "kept", "worst"), rows


def nets(cells: Sequence[NetCell], peers: Sequence[str]) -> Table:
    """Return a row a net and task: our time, and each peer's over it."""
    rows: Rows = [
        (*_named(cell), milliseconds(cell.median(OURS)),
         *(median_and_quartiles(cell.ratio(peer)) for peer in peers))
        for cell in cells
    ]  # fmt: skip
    return ("net", "task", "threads", "ms", *(f"{title(peer)} / convcore" for peer in peers)), rows


def net_means(cells: Sequence[NetCell], peers: Sequence[str]) -> Table:
    """Return a row a peer and task: the geometric mean of the ratios, and the lowest."""
    return ("peer", "task", "mean", "lowest"), list(_net_means(cells, peers))


def _net_means(cells: Sequence[NetCell], peers: Sequence[str]) -> Iterator[Sequence[str]]:
    for peer in peers:
        for task in TASKS:
            found = [cell.ratio(peer) for cell in cells if cell.task == task]
            if ratios := [ratio.median for ratio in found if ratio is not None]:
                mean = geometric_mean(ratios)
                yield title(peer), task, f"{mean:.2f}", f"{min(ratios):.2f}"


def variants(cells: Sequence[NetCell]) -> Table:
    """Return a row a net, task, library and format: time and peak memory."""
    rows: Rows = [
        (*_named(cell), title(peer), short(format), milliseconds(quartiles(seconds).median),
         mebibytes(cell.peak_bytes[peer, format]))
        for cell in cells
        for (peer, format), seconds in cell.seconds.items()
    ]  # fmt: skip
    return ("net", "task", "threads", "library", "format", "ms", "peak memory"), rows


def busy(rows: Sequence[Row], loads: Sequence[Load]) -> Table:
    """Return a row a workload and library: the slowest trial beside each load."""

    def cell(row: Row, load: Load) -> str:
        worst, slowdown = row.worst(load), row.slowdown(load)
        if worst is None:
            return ""
        return milliseconds(worst / 1e3) + (f" ({slowdown:.1f})" if load.count and slowdown else "")

    body: Rows = [
        (row.workload, title(row.peer), *(cell(row, load) for load in loads))
        for row in rows
        if row.trials
    ]
    return ("workload", "library", *map(str, loads)), body


def _named(cell: NetCell) -> tuple[str, str, str]:
    return cell.net.name, cell.task, str(cell.threads)
