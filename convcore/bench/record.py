"""What a run measured, summed up, and as plain data for a file and for later comparison."""

from __future__ import annotations

import dataclasses
import math
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from convcore.bench.pairing import geometric_mean, spread
from convcore.bench.request import Request
from convcore.bench.runner import OURS, Cell, Outcome

# Of the file's layout; raised when a reader of older files would misread a newer one.
VERSION = 1


@dataclasses.dataclass(frozen=True, slots=True)
class Mean:
    """A geometric mean of ratios to one peer, over the dense cells of one kind."""

    peer: str
    kind: str
    value: float
    cells: int


def dense_ratios(outcome: Outcome, peer: str) -> list[tuple[Cell, float]]:
    """Return the dense cells that have a ratio to a peer, each with its median.

    Grouped and depthwise layers are left out: their ratios are another story, and would drown this
    one (a NumPy im2col takes a hundred products for one depthwise layer).
    """
    pairs = [(cell, cell.ratio(peer)) for cell in outcome.cells if cell.layer.dense]
    return [(cell, ratio.median) for cell, ratio in pairs if ratio is not None]


def means(outcome: Outcome, request: Request) -> list[Mean]:
    """Return the geometric means over all dense cells, and by threads, format and map."""
    found = []
    for peer in request.peers:
        ratios = dense_ratios(outcome, peer)
        for kind, belongs in _kinds(request):
            values = [ratio for cell, ratio in ratios if belongs(cell)]
            if values:
                found.append(Mean(peer, kind, geometric_mean(values), len(values)))
    return found


def worst(outcome: Outcome, peer: str) -> tuple[Cell, float] | None:
    """Return the dense cell with the lowest ratio to a peer."""
    return min(dense_ratios(outcome, peer), key=lambda pair: pair[1], default=None)


def _kinds(request: Request) -> Iterator[tuple[str, Callable[[Cell], bool]]]:
    yield "all dense cells", lambda cell: True
    for threads in request.threads:
        plural = "" if threads == 1 else "s"
        yield f"{threads} thread{plural}", lambda cell, t=threads: cell.threads == t
    for form in request.formats:
        yield form, lambda cell, f=form: cell.format == f
    for name in request.maps:
        yield name, lambda cell, m=name: cell.map == m


def as_data(outcome: Outcome, request: Request, machine: Mapping[str, Any]) -> dict[str, Any]:
    """Return everything as JSON's types; numbers that JSON does not have become None.

    ``machine`` is what the caller knows about it: the CPU's name, its load.
    """
    return {
        "version": VERSION,
        "machine": {"system": platform.platform(), "python": sys.version, **machine},
        "request": {
            **{
                name: getattr(request, name) for name in ("rounds", "budget", "isa", "keep", "seed")
            },
            "layers": {layer.name: layer.spec for layer in request.layers},
        },
        "finished": outcome.finished,
        "workers": outcome.workers,
        "cells": [_cell_data(cell, request) for cell in outcome.cells],
        "means": [dataclasses.asdict(mean) for mean in means(outcome, request)],
    }


def _cell_data(cell: Cell, request: Request) -> dict[str, Any]:
    ratios = {peer: cell.ratio(peer) for peer in request.peers}
    return {
        "layer": cell.layer.name,
        "spec": cell.layer.spec,
        "map": cell.map,
        "format": cell.format,
        "threads": cell.threads,
        "error_in_eps": {peer: _finite(error) for peer, error in cell.errors.items()},
        "seconds": cell.seconds,
        "median_seconds": {p: spread(seconds).median for p, seconds in cell.seconds.items()},
        "gflops": _finite(cell.gflops),
        "ratio": {p: dataclasses.asdict(r) for p, r in ratios.items() if r is not None},
        "wrong": cell.wrong,
        "problems": cell.problems,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def verdict(outcome: Outcome) -> str:
    """Return one plain line: whether all results were right."""
    results = sum(len(cell.errors) + len(cell.problems) for cell in outcome.cells)
    if not outcome.cells:
        return "No result was checked."
    if not outcome.wrong:
        worst_error = max((cell.errors[OURS] for cell in outcome.cells), default=0.0)
        return (
            f"All {results} results agree with the oracle; "
            f"convcore's largest error is {worst_error:.2f} eps."
        )
    return f"WRONG: {len(outcome.wrong)} of {len(outcome.cells)} cells have a wrong result."
