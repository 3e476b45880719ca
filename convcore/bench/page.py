"""Pages in Markdown that show a run of layers, or of whole nets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from convcore.bench import tables
from convcore.bench.nets import NetCell
from convcore.bench.peers import OURS, title
from convcore.bench.promises import net_promises, promises
from convcore.bench.results import (
    Cell,
    Outcome,
    Request,
    better_ratios,
    cell_groups,
    counted,
    median_and_quartiles,
    milliseconds,
    short,
    verdict,
    whole,
)
from convcore.bench.tables import Rows, Table

_RATIO = "A peer's time over convcore's: above 1, convcore is the faster."


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
    found = promises(outcome, request)
    held = f" --algorithm {request.algorithm}" if request.algorithm else ""
    growth = tables.growth(outcome) if "scaling" in request.suites else ((), [])
    return _page(
        [f"# What `convcore bench{held}` measured", ""],
        [f"    {command}", "", _conditions(outcome, machine), "", verdict(outcome)],
        _section("## Figures and their limits", tables.limits(found)),
        _section("## Geometric means", tables.layer_means(outcome, request), _RATIO),
        ["", f"![Ratios layer by layer]({picture})"] if picture else [],
        _section("## Growth", growth, "Time follows the power of the number of pixels."),
        *(_section(f"## {counted(t)}", _cells(outcome, request, t)) for t in request.threads),
        _section("## Cells that take PyTorch under 50 us", _small(outcome)),
        _section("## Workers", tables.workers(outcome)),
    )


def as_nets_page(
    cells: Sequence[NetCell],
    peers: Sequence[str],
    machine: Mapping[str, Any],
    command: str,
    picture: str,
) -> str:
    """Return the page of a run of nets; the last three as for `as_page`."""
    found = net_promises(cells, peers)
    return _page(
        ["# What `convcore bench --nets` measured", ""],
        [f"    {command}", "", f"{machine['cpu']}, {machine['date']}."],
        _section("## Figures and their limits", tables.limits(found)),
        ["", f"![Speed of nets beside PyTorch's]({picture})"] if picture else [],
        _section("## Nets", tables.nets(cells, peers), f"Each side's better format. {_RATIO}"),
        _section("## Geometric means", tables.net_means(cells, peers)),
        _section("## Every library and format", tables.variants(cells)),
    )


def _conditions(outcome: Outcome, machine: Mapping[str, Any]) -> str:
    finished = "" if outcome.finished else " The run was interrupted: cells are missing."
    speed = tables.peaks(outcome) or "an unknown speed"
    peak = f"A large matrix product, the peak below, runs at {speed}. {tables.ABOVE_PEAK}"
    return f"{machine['cpu']}, {machine['date']}. {peak}{finished}"


def _cells(outcome: Outcome, request: Request, threads: int) -> Table:
    """Return a row a group: time, speed and ratios by format, then better formats' ratios."""
    better = {
        (peer, ratio.ours.group): f"{ratio.quartiles.median:.2f}"
        for peer in request.peers
        for ratio in better_ratios(outcome, peer)
    }
    rows: Rows = []
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
    return headings, rows


def _columns(cell: Cell, outcome: Outcome, request: Request) -> list[str]:
    return [
        cell.algorithm,
        milliseconds(cell.median(OURS)),
        whole(cell.gflops),
        whole(outcome.percent_of_peak(cell)),
        f"{cell.errors[OURS]:.2f}" if OURS in cell.errors else "-",
        *(median_and_quartiles(cell.ratio(peer)) for peer in request.peers),
    ]


def _small(outcome: Outcome) -> Table:
    rows: Rows = []
    for cell in outcome.cells:
        if cell.small:
            times = [f"{1e6 * cell.median(library):.1f}" for library in (OURS, "torch")]
            ratio = cell.ratio("torch")
            more = "" if ratio is None else f"{1 / ratio.median:.2f}"
            rows.append((cell.name, cell.algorithm, *times, more))
    return ("cell", "algorithm", "us", "PyTorch us", "times PyTorch's"), rows


def _page(*parts: Iterable[str]) -> str:
    return "\n".join(line for part in parts for line in part) + "\n"


def _section(heading: str, table: Table, caption: str = "") -> list[str]:
    """Return a heading, what it shows, and the table; nothing if it has no rows."""
    headings, rows = table
    if not rows:
        return []
    lines = [headings, ["---"] * len(headings), *rows]
    return ["", heading, "", *([caption, ""] if caption else []), *map(_line, lines)]


def _line(texts: Sequence[str]) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"
