"""What came of measuring nets, as a table and as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from convcore.bench.cell import OURS
from convcore.bench.nets.catalogue import RUN, RUN_ONE, TRAIN
from convcore.bench.nets.measure import NetCell
from convcore.bench.pairing import geometric_mean, spread
from convcore.bench.peers import title
from convcore.bench.text import counted, mebibytes, milliseconds, quartiles, short


def print_progress(console: Console, cell: NetCell) -> None:
    """Print that a cell is done."""
    ours = cell.best(OURS)
    assert ours is not None
    took = milliseconds(spread(cell.seconds[ours]).median)
    console.print(f"{cell.net.name}, {cell.task}, {counted(cell.threads)}: {took} ms")
    for peer, reason in cell.failed.items():
        console.print(f"  {title(peer)} left out: {reason}", style="red", markup=False)


def print_cells(
    console: Console, cells: Sequence[NetCell], peers: Sequence[str], rounds: int
) -> None:
    """Print a row a cell, geometric means, and what was wrong."""
    console.print(
        f"Milliseconds, median of {rounds} rounds taken in turn, each side's better format; "
        "above 1, convcore is faster:"
    )
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("net", "task"):
        table.add_column(name)
    names = ["threads", "convcore", "format", "MiB"]
    for peer in peers:
        names += [title(peer), "format", "MiB", "ratio", "quartiles"]
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    for cell in cells:
        columns = [_columns(cell, OURS), *([*_columns(cell, p), *_ratio(cell, p)] for p in peers)]
        texts = [text for column in columns for text in column]
        table.add_row(cell.net.name, cell.task, str(cell.threads), *texts)
    console.print(table)
    for peer in peers:
        for task in (TRAIN, RUN, RUN_ONE):
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


def _columns(cell: NetCell, peer: str) -> list[str]:
    way = cell.best(peer)
    if way is None:
        return ["-", "", ""]
    took = milliseconds(spread(cell.seconds[way]).median)
    return [took, short(way[1]), mebibytes(cell.peak_bytes[way])]


def _ratio(cell: NetCell, peer: str) -> list[str]:
    ratio = cell.ratio(peer)
    return ["-", ""] if ratio is None else [f"{ratio.median:.2f}", quartiles(ratio)]


def as_data(cell: NetCell) -> dict[str, Any]:
    """Return a cell for a JSON file."""
    ways = {
        f"{peer}/{format}" if format else peer: {
            "seconds": seconds,
            "peak_bytes": cell.peak_bytes[peer, format],
        }
        for (peer, format), seconds in cell.seconds.items()
    }
    return {
        "net": cell.net.name,
        "task": cell.task,
        "threads": cell.threads,
        "input": cell.net.input_shape(cell.task),
        "difference": cell.error(),
        "failed": cell.failed,
        "ways": ways,
    }
