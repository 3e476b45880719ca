"""A page in Markdown that shows a run: what was measured with what, figures, chart, every cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from convcore.bench.cell import Cell, Outcome
from convcore.bench.markdown import promise_table, section, table
from convcore.bench.peers import title
from convcore.bench.promises import promises
from convcore.bench.record import Ratio, better_ratios, bouts, means, verdict
from convcore.bench.request import Request
from convcore.bench.scaling import growths
from convcore.bench.text import counted, mebibytes, milliseconds, quartiles, short, whole


def as_page(
    outcome: Outcome, request: Request, machine: Mapping[str, Any], command: str, picture: str
) -> str:
    """Return the page.

    Parameters
    ----------
    machine : mapping
        Its ``cpu`` and ``date`` are shown.
    command : str
        What made the page.
    picture : str
        The chart's file, relative to the page; empty for none.
    """
    parts = [
        ["# What `convcore bench` measured", ""],
        [f"    {command}", "", _conditions(outcome, machine), "", verdict(outcome)],
        section("## Figures and their limits", _promises(outcome, request)),
        section("## Geometric means", _means(outcome, request)),
        ["", f"![Ratios layer by layer]({picture})"] if picture else [],
        section("## Growth", _growths(outcome) if "scaling" in request.suites else []),
        *(section(f"## {counted(t)}", _cells(outcome, request, t)) for t in request.threads),
        section("## Cells that take PyTorch under 50 us", _small(outcome, request)),
        section("## Workers", _workers(outcome)),
    ]
    return "\n".join(line for part in parts for line in part) + "\n"


def _conditions(outcome: Outcome, machine: Mapping[str, Any]) -> str:
    peaks = ", ".join(
        f"{gflops:.0f} GFLOP/s in {dtype} on {counted(threads)}"
        for threads, by_dtype in outcome.peaks.items()
        for dtype, gflops in by_dtype.items()
    )
    finished = "" if outcome.finished else " The run was interrupted: cells are missing."
    peak = f"A large matrix product, the peak below, runs at {peaks or 'an unknown speed'}."
    return f"{machine['cpu']}, {machine['date']}. {peak}{finished}"


def _promises(outcome: Outcome, request: Request) -> Iterator[str]:
    yield from promise_table(promises(outcome, request))


def _means(outcome: Outcome, request: Request) -> Iterator[str]:
    found = means(outcome, request)
    if found:
        yield "A peer's time over convcore's: above 1, convcore is the faster."
        yield ""
        rows = [
            (title(m.peer), short(m.kind), f"{m.value:.2f}", str(m.cells), f"{m.worst:.2f}",
             m.worst_cell)
            for m in found
        ]  # fmt: skip
        yield from table(("peer", "over", "mean", "cells", "worst", "which"), rows)


def _growths(outcome: Outcome) -> Iterator[str]:
    rows = [
        (g.sweep, short(g.map), short(g.format), str(g.threads), f"{g.exponent:.2f}")
        for g in growths(outcome)
    ]
    if rows:
        yield "Time follows the power of the number of pixels: 1 is linear."
        yield ""
        yield from table(("sweep", "map", "format", "threads", "power"), rows)


def _cells(outcome: Outcome, request: Request, threads: int) -> Iterator[str]:
    """Yield a row a bout: for each format time, speed and ratios, then the better formats'."""
    better = {
        (peer, ratio.ours.bout): ratio
        for peer in request.peers
        for ratio in better_ratios(outcome, peer)
    }
    found = [cells for cells in bouts(outcome) if cells[0].threads == threads]
    rows = [
        (*_bout_name(cells), *_formats(cells, outcome, request), *_better(cells, request, better))
        for cells in found
        if not any(cell.small for cell in cells)
    ]
    if rows:
        headings = ["layer", "map"]
        for form in request.formats:
            headings += [f"{short(form)} algorithm", "ms", "GFLOP/s", "% of peak", "eps"]
            headings += [f"{title(peer)} / convcore" for peer in request.peers]
        headings += [f"{title(peer)}, better formats" for peer in request.peers]
        yield from table(headings, rows)


def _bout_name(cells: Sequence[Cell]) -> tuple[str, str]:
    dtype = "" if cells[0].dtype == "float32" else f", {cells[0].dtype}"
    return cells[0].layer.name + dtype, short(cells[0].map)


def _formats(cells: Sequence[Cell], outcome: Outcome, request: Request) -> Iterator[str]:
    for cell in cells:
        yield cell.algorithm
        yield milliseconds(cell.median("convcore"))
        yield whole(cell.gflops)
        yield whole(outcome.percent_of_peak(cell))
        yield f"{cell.errors['convcore']:.2f}" if "convcore" in cell.errors else "-"
        for peer in request.peers:
            ratio = cell.ratio(peer)
            yield "" if ratio is None else f"{ratio.median:.2f} ({quartiles(ratio)})"


def _better(cells: Sequence[Cell], request: Request, better: Mapping[Any, Ratio]) -> Iterator[str]:
    for peer in request.peers:
        ratio = better.get((peer, cells[0].bout))
        yield "" if ratio is None else f"{ratio.spread.median:.2f}"


def _small(outcome: Outcome, request: Request) -> Iterator[str]:
    rows = [
        (cell.name, cell.algorithm, f"{1e6 * cell.median('convcore'):.1f}", *_small_ratios(cell))
        for cell in outcome.cells
        if cell.small
    ]
    if rows:
        yield from table(("cell", "algorithm", "us", "PyTorch us", "times PyTorch's"), rows)


def _small_ratios(cell: Cell) -> Iterator[str]:
    yield f"{1e6 * cell.median('torch'):.1f}"
    ratio = cell.ratio("torch")
    yield "" if ratio is None else f"{1 / ratio.median:.2f}"


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
    yield from table(("worker", "threads", "loaded", "variables", "peak memory"), rows)
