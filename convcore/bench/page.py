"""Pages in Markdown that show a run of layers, or of whole nets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from convcore.bench.measuring import quartiles
from convcore.bench.nets import NetCell
from convcore.bench.peers import OURS, title
from convcore.bench.promises import Promise, net_promises, promises
from convcore.bench.results import (
    Cell,
    Outcome,
    Request,
    better_ratios,
    cell_groups,
    counted,
    growths,
    means,
    mebibytes,
    median_and_quartiles,
    milliseconds,
    short,
    verdict,
    whole,
)


def as_page(
    outcome: Outcome, request: Request, machine: Mapping[str, Any], command: str, picture: str
) -> str:
    """Return the page of a run of layers.

    Parameters
    ----------
    machine : mapping
        Its ``cpu`` and ``date`` are shown.
    command : str
        What made the page.
    picture : str
        The chart's file, relative to the page; empty for none.
    """
    return _page(
        ["# What `convcore bench` measured", ""],
        [f"    {command}", "", _conditions(outcome, machine), "", verdict(outcome)],
        _promises(promises(outcome, request)),
        _section("## Geometric means", _means(outcome, request)),
        ["", f"![Ratios layer by layer]({picture})"] if picture else [],
        _section("## Growth", _growths(outcome) if "scaling" in request.suites else []),
        *(_section(f"## {counted(t)}", _cells(outcome, request, t)) for t in request.threads),
        _section("## Cells that take PyTorch under 50 us", _small(outcome)),
        _section("## Workers", _workers(outcome)),
    )


def as_nets_page(
    cells: Sequence[NetCell], peers: Sequence[str], machine: Mapping[str, Any], command: str
) -> str:
    """Return the page of a run of nets; ``machine`` and ``command`` as for `as_page`."""
    return _page(
        ["# What `convcore bench --nets` measured", ""],
        [f"    {command}", "", f"{machine['cpu']}, {machine['date']}."],
        _promises(net_promises(cells, peers)),
        _section("## Nets", _nets(cells, peers)),
        _section("## Every library and format", _ways(cells)),
    )


def _conditions(outcome: Outcome, machine: Mapping[str, Any]) -> str:
    peaks = ", ".join(
        f"{gflops:.0f} GFLOP/s in {dtype} on {counted(threads)}"
        for threads, by_dtype in outcome.peaks.items()
        for dtype, gflops in by_dtype.items()
    )
    finished = "" if outcome.finished else " The run was interrupted: cells are missing."
    peak = f"A large matrix product, the peak below, runs at {peaks or 'an unknown speed'}."
    return f"{machine['cpu']}, {machine['date']}. {peak}{finished}"


def _means(outcome: Outcome, request: Request) -> Iterator[str]:
    rows = [
        (title(m.peer), short(m.kind), f"{m.value:.2f}", str(m.cells), f"{m.worst:.2f}",
         m.worst_cell)
        for m in means(outcome, request)
    ]  # fmt: skip
    if rows:
        yield "A peer's time over convcore's: above 1, convcore is the faster."
        yield ""
        yield from _table(("peer", "over", "mean", "cells", "worst", "which"), rows)


def _growths(outcome: Outcome) -> Iterator[str]:
    rows = [
        (g.sweep, short(g.pass_name), short(g.format), str(g.threads), f"{g.exponent:.2f}")
        for g in growths(outcome)
    ]
    if rows:
        yield "Time follows the power of the number of pixels: 1 is linear."
        yield ""
        yield from _table(("sweep", "pass", "format", "threads", "power"), rows)


def _cells(outcome: Outcome, request: Request, threads: int) -> Iterator[str]:
    """Yield a row for each group: time, speed and ratios by format, then better formats' ratios."""
    better = {
        (peer, ratio.ours.group): f"{ratio.quartiles.median:.2f}"
        for peer in request.peers
        for ratio in better_ratios(outcome, peer)
    }
    rows = []
    for cells in cell_groups(outcome):
        if cells[0].threads == threads and not any(cell.small for cell in cells):
            dtype = "" if cells[0].dtype == "float32" else f", {cells[0].dtype}"
            row = [cells[0].layer.name + dtype, short(cells[0].pass_name)]
            for cell in cells:
                row += _columns(cell, outcome, request)
            rows.append(row + [better.get((peer, cells[0].group), "") for peer in request.peers])
    headings = ["layer", "pass"]
    for form in request.formats:
        headings += [f"{short(form)} algorithm", "ms", "GFLOP/s", "% of peak", "eps"]
        headings += [f"{title(peer)} / convcore" for peer in request.peers]
    headings += [f"{title(peer)}, better formats" for peer in request.peers]
    yield from _table(headings, rows)


def _columns(cell: Cell, outcome: Outcome, request: Request) -> list[str]:
    return [
        cell.algorithm,
        milliseconds(cell.median(OURS)),
        whole(cell.gflops),
        whole(outcome.percent_of_peak(cell)),
        f"{cell.errors[OURS]:.2f}" if OURS in cell.errors else "-",
        *(median_and_quartiles(cell.ratio(peer)) for peer in request.peers),
    ]


def _small(outcome: Outcome) -> Iterator[str]:
    rows = []
    for cell in outcome.cells:
        if cell.small:
            times = [f"{1e6 * cell.median(library):.1f}" for library in (OURS, "torch")]
            ratio = cell.ratio("torch")
            more = "" if ratio is None else f"{1 / ratio.median:.2f}"
            rows.append((cell.name, cell.algorithm, *times, more))
    yield from _table(("cell", "algorithm", "us", "PyTorch us", "times PyTorch's"), rows)


def _workers(outcome: Outcome) -> Iterator[str]:
    rows = [
        (
            title(key.partition("@")[0]),
            str(about["threads"]),
            ", ".join(f"{name} {value}" for name, value in about["loaded"].items()),
            ", ".join(f"{name}={value}" for name, value in about["variables"].items()),
            mebibytes(about.get("peak_bytes")),
        )
        for key, about in outcome.workers.items()
    ]
    yield from _table(("worker", "threads", "loaded", "variables", "peak memory"), rows)


def _nets(cells: Sequence[NetCell], peers: Sequence[str]) -> Iterator[str]:
    """Yield a row a net and task: our time, and each peer's over it."""
    yield "Each side's better format. A peer's time over convcore's: above 1, convcore is faster."
    yield ""
    rows = [
        (*_named(cell), milliseconds(cell.median(OURS)),
         *(median_and_quartiles(cell.ratio(peer)) for peer in peers))
        for cell in cells
    ]  # fmt: skip
    names = ["net", "task", "threads", "ms", *(f"{title(peer)} / convcore" for peer in peers)]
    yield from _table(names, rows)


def _named(cell: NetCell) -> tuple[str, str, str]:
    return cell.net.name, cell.task, counted(cell.threads)


def _ways(cells: Sequence[NetCell]) -> Iterator[str]:
    rows = [
        (*_named(cell), title(peer), short(format), milliseconds(quartiles(seconds).median),
         mebibytes(cell.peak_bytes[peer, format]))
        for cell in cells
        for (peer, format), seconds in cell.seconds.items()
    ]  # fmt: skip
    yield from _table(("net", "task", "threads", "library", "format", "ms", "peak memory"), rows)


def _page(*parts: Iterable[str]) -> str:
    return "\n".join(line for part in parts for line in part) + "\n"


def _section(heading: str, lines: Iterable[str]) -> list[str]:
    """Return the lines below a heading; nothing if there are none."""
    lines = list(lines)
    return ["", heading, "", *lines] if lines else []


def _promises(found: Sequence[Promise]) -> list[str]:
    rows = [(p.text, p.value, p.limit, "yes" if p.kept else "**no**", p.worst) for p in found]
    table = _table(("figure", "is", "limit", "kept", "worst"), rows)
    return _section("## Figures and their limits", table)


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table; none if it has no rows."""
    lines = [_line(row) for row in rows]
    return [_line(headings), _line(["---"] * len(headings)), *lines] if lines else []


def _line(texts: Sequence[str]) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"
