"""A page in Markdown that shows what whole nets took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from convcore.bench.cell import OURS
from convcore.bench.markdown import promise_table, section, table
from convcore.bench.nets.measure import NetCell
from convcore.bench.nets.promises import promises
from convcore.bench.pairing import spread
from convcore.bench.peers import title
from convcore.bench.text import counted, mebibytes, milliseconds, quartiles, short


def as_page(
    cells: Sequence[NetCell], peers: Sequence[str], machine: Mapping[str, Any], command: str
) -> str:
    """Return the page.

    Parameters
    ----------
    machine : mapping
        Its ``cpu`` and ``date`` are shown.
    command : str
        What made the page.
    """
    parts = [
        ["# What `convcore bench --nets` measured", ""],
        [f"    {command}", "", f"{machine['cpu']}, {machine['date']}."],
        section("## Figures and their limits", promise_table(promises(cells, peers))),
        section("## Nets", _nets(cells, peers)),
        section("## Every library and format", _ways(cells)),
    ]
    return "\n".join(line for part in parts for line in part) + "\n"


def _nets(cells: Sequence[NetCell], peers: Sequence[str]) -> Iterator[str]:
    """Yield a row a net and task: our time, and each peer's over it."""
    yield "Each side's better format. A peer's time over convcore's: above 1, convcore is faster."
    yield ""
    names = ["net", "task", "threads", "ms", *(f"{title(peer)} / convcore" for peer in peers)]
    yield from table(names, ((*_named(cell), _ours(cell), *_ratios(cell, peers)) for cell in cells))


def _named(cell: NetCell) -> tuple[str, str, str]:
    return cell.net.name, cell.task, counted(cell.threads)


def _ours(cell: NetCell) -> str:
    way = cell.best(OURS)
    return "-" if way is None else milliseconds(spread(cell.seconds[way]).median)


def _ratios(cell: NetCell, peers: Sequence[str]) -> Iterator[str]:
    for peer in peers:
        ratio = cell.ratio(peer)
        yield "" if ratio is None else f"{ratio.median:.2f} ({quartiles(ratio)})"


def _ways(cells: Sequence[NetCell]) -> Iterator[str]:
    rows = [
        (*_named(cell), title(peer), short(format), milliseconds(spread(seconds).median),
         mebibytes(cell.peak_bytes[peer, format]))
        for cell in cells
        for (peer, format), seconds in cell.seconds.items()
    ]  # fmt: skip
    yield from table(("net", "task", "threads", "library", "format", "ms", "peak memory"), rows)
