"""What a run measured, summed up, and as plain data for a file and for later comparison."""

from __future__ import annotations

import dataclasses
import itertools
import math
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from convcore.bench.cell import OURS, Cell, Outcome, ratio_between
from convcore.bench.pairing import Spread, geometric_mean, spread
from convcore.bench.request import Request
from convcore.bench.text import counted

# Of the file's layout; raised when a reader of older files would misread a newer one.
VERSION = 2
BETTER = "each side's better format"


@dataclasses.dataclass(frozen=True, slots=True)
class Ratio:
    """A peer's time over convcore's: above 1, convcore is the faster."""

    ours: Cell
    theirs: Cell
    """The same cell, or the same bout in the format that is the peer's better one."""
    spread: Spread

    @property
    def name(self) -> str:
        """Return what was compared, for people."""
        if self.ours is self.theirs:
            return self.ours.name
        return f"{self.ours.name} beside {self.theirs.format}"


@dataclasses.dataclass(frozen=True, slots=True)
class Mean:
    """A geometric mean of ratios to one peer, over the cells of one kind, and the lowest ratio."""

    peer: str
    kind: str
    value: float
    cells: int
    worst: float
    worst_cell: str


def ratios(outcome: Outcome, peer: str) -> list[Ratio]:
    """Return the ratios to a peer in the same format; small cells are left out."""
    pairs = [(cell, cell.ratio(peer)) for cell in outcome.cells if not cell.small]
    return [Ratio(cell, cell, ratio) for cell, ratio in pairs if ratio is not None]


def better_ratios(outcome: Outcome, peer: str) -> list[Ratio]:
    """Return the ratios to a peer of each side's better format; small bouts are left out.

    A side's better format is the one with the lower median.  Both formats take the same rounds, so
    these ratios are paired too.
    """
    found = []
    for cells in bouts(outcome):
        ours = [cell for cell in cells if cell.median(OURS)]
        theirs = [cell for cell in cells if cell.median(peer)]
        if ours and theirs and not any(cell.small for cell in cells):
            best = min(ours, key=lambda cell: cell.median(OURS))
            beside = min(theirs, key=lambda cell: cell.median(peer))
            if (ratio := ratio_between(best, beside, peer)) is not None:
                found.append(Ratio(best, beside, ratio))
    return found


def bouts(outcome: Outcome) -> list[list[Cell]]:
    """Return the cells, those together that differ in their format only."""
    return [list(cells) for _, cells in itertools.groupby(outcome.cells, lambda cell: cell.bout)]


def mean_of(peer: str, kind: str, values: list[Ratio]) -> Mean | None:
    """Return the geometric mean of the ratios' medians; None for none."""
    if not values:
        return None
    lowest = min(values, key=lambda ratio: ratio.spread.median)
    mean = geometric_mean(ratio.spread.median for ratio in values)
    return Mean(peer, kind, mean, len(values), lowest.spread.median, lowest.name)


def means(outcome: Outcome, request: Request) -> list[Mean]:
    """Return every peer's geometric means: over all cells, kind by kind, and of better formats."""
    found = []
    for peer in request.peers:
        same, better = ratios(outcome, peer), better_ratios(outcome, peer)
        kinds = [(kind, [r for r in same if belongs(r.ours)]) for kind, belongs in _kinds(request)]
        kinds.insert(1, (BETTER, better))
        found += [mean_of(peer, kind, values) for kind, values in kinds]
    return [mean for mean in found if mean is not None]


def _kinds(request: Request) -> Iterator[tuple[str, Callable[[Cell], bool]]]:
    yield "all cells", lambda cell: True
    if len({layer.dense for layer in request.layers}) > 1:
        yield "dense layers", lambda cell: cell.layer.dense
        yield "grouped and depthwise", lambda cell: not cell.layer.dense
    for threads in request.threads:
        yield counted(threads), lambda cell, t=threads: cell.threads == t
    for form in request.formats:
        yield form, lambda cell, f=form: cell.format == f
    for name in request.maps:
        yield name, lambda cell, m=name: cell.map == m
    if len(request.dtypes) > 1:
        for dtype in request.dtypes:
            yield dtype, lambda cell, d=dtype: cell.dtype == d


def errors_by_algorithm(outcome: Outcome) -> dict[tuple[str, str], tuple[float, float]]:
    """Return convcore's largest error and what is allowed, both in eps, by algorithm and dtype."""
    found: dict[tuple[str, str], tuple[float, float]] = {}
    for cell in outcome.cells:
        if OURS in cell.errors:
            key = (cell.algorithm, cell.dtype)
            before, _ = found.get(key, (0.0, 0.0))
            found[key] = (max(before, cell.errors[OURS]), cell.allowed(OURS))
    return found


def as_data(outcome: Outcome, request: Request, machine: Mapping[str, Any]) -> dict[str, Any]:
    """Return everything as JSON's types; numbers that JSON does not have become None.

    ``machine`` is what the caller knows about it: the CPU's name, its load.
    """
    names = ("suites", "rounds", "budget", "isa", "strict", "keep", "seed")
    return {
        "version": VERSION,
        "machine": {"system": platform.platform(), "python": sys.version, **machine},
        "request": {
            **{name: getattr(request, name) for name in names},
            "layers": {layer.name: layer.spec for layer in request.layers},
        },
        "finished": outcome.finished,
        "workers": outcome.workers,
        "peak_gflops": outcome.peaks,
        "cells": [_cell_data(cell, outcome, request) for cell in outcome.cells],
        "better_format": [
            {
                **_named(ratio.ours),
                "peer": peer,
                "formats": [ratio.ours.format, ratio.theirs.format],
                "ratio": dataclasses.asdict(ratio.spread),
            }
            for peer in request.peers
            for ratio in better_ratios(outcome, peer)
        ],
        "means": [dataclasses.asdict(mean) for mean in means(outcome, request)],
        "errors": [
            {"algorithm": algorithm, "dtype": dtype, "eps": _finite(error), "allowed_eps": allowed}
            for (algorithm, dtype), (error, allowed) in errors_by_algorithm(outcome).items()
        ],
    }


def _named(cell: Cell) -> dict[str, Any]:
    return {
        "layer": cell.layer.name,
        "spec": cell.layer.spec,
        "map": cell.map,
        "format": cell.format,
        "threads": cell.threads,
        "dtype": cell.dtype,
    }


def _cell_data(cell: Cell, outcome: Outcome, request: Request) -> dict[str, Any]:
    found = {peer: cell.ratio(peer) for peer in request.peers}
    return {
        **_named(cell),
        "algorithm": cell.algorithm,
        "error_in_eps": {peer: _finite(error) for peer, error in cell.errors.items()},
        "seconds": cell.seconds,
        "median_seconds": {p: spread(seconds).median for p, seconds in cell.seconds.items()},
        "gflops": _finite(cell.gflops),
        "percent_of_peak": _finite(outcome.percent_of_peak(cell)),
        "small": cell.small,
        "ratio": {p: dataclasses.asdict(r) for p, r in found.items() if r is not None},
        "wrong": cell.wrong,
        "problems": cell.problems,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def as_rows(data: Mapping[str, Any], peers: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return `as_data`'s cells as flat rows, all with the same columns, for a spreadsheet."""
    return [_row(cell, peers) for cell in data["cells"]]


def _row(cell: Mapping[str, Any], peers: tuple[str, ...]) -> dict[str, Any]:
    names = ("layer", "spec", "map", "format", "threads", "dtype", "algorithm")
    row = {name: cell[name] for name in names}
    row["convcore_seconds"] = cell["median_seconds"].get(OURS)
    row["gflops"], row["percent_of_peak"] = cell["gflops"], cell["percent_of_peak"]
    row["error_in_eps"] = cell["error_in_eps"].get(OURS)
    for peer in peers:
        row[f"{peer}_seconds"] = cell["median_seconds"].get(peer)
        ratio = cell["ratio"].get(peer, {})
        row[f"{peer}_ratio"] = ratio.get("median")
        row[f"{peer}_ratio_low"], row[f"{peer}_ratio_high"] = ratio.get("low"), ratio.get("high")
    return row


def verdict(outcome: Outcome) -> str:
    """Return one plain line: whether all results were right."""
    results = sum(len(cell.errors) + len(cell.problems) for cell in outcome.cells)
    if not outcome.cells:
        return "No result was checked."
    if not outcome.wrong:
        worst_error = max((cell.errors.get(OURS, 0.0) for cell in outcome.cells), default=0.0)
        return (
            f"All {results} results agree with the oracle; "
            f"convcore's largest error is {worst_error:.2f} eps."
        )
    return f"WRONG: {len(outcome.wrong)} of {len(outcome.cells)} cells have a wrong result."
