"""How cost grows along a sweep: the power of size that time follows, 1 for linear."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from convcore.bench.cell import OURS, Cell, Outcome
from convcore.bench.suites import SWEEPS

# Below this a call's fixed cost shows; it is no part of what grows.
LEAST_SECONDS = 100e-6


@dataclass(frozen=True, slots=True)
class Growth:
    """One sweep in one map, format, number of threads and dtype."""

    sweep: str
    map: str
    format: str
    threads: int
    dtype: str
    sizes: tuple[int, ...]
    """Output pixels of the whole batch, N*OH*OW."""
    seconds: tuple[float, ...]

    @property
    def exponent(self) -> float:
        """Return p of seconds ~ sizes^p, least squares over what takes `LEAST_SECONDS`; or nan."""
        return exponent(self.sizes, self.seconds)


def exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """Return the slope of log(seconds) over log(sizes); nan for fewer than two points."""
    points = [(a, b) for a, b in zip(sizes, seconds, strict=True) if b >= LEAST_SECONDS]
    if len({size for size, _ in points}) < 2:
        return math.nan
    logs = [[math.log(value) for value in axis] for axis in zip(*points, strict=True)]
    return statistics.linear_regression(*logs).slope


def growths(outcome: Outcome) -> list[Growth]:
    """Return what was measured of every sweep, two points or more of each."""
    found = []
    for sweep, specs in SWEEPS.items():
        lines: dict[tuple[str, str, int, str], list[Cell]] = {}
        for cell in outcome.cells:
            if cell.layer.spec in _complete(specs) and cell.median(OURS):
                line = (cell.map, cell.format, cell.threads, cell.dtype)
                lines.setdefault(line, []).append(cell)
        for line, cells in lines.items():
            if len(cells) > 1:
                # Not in the order of measuring: sweeps share layers, which are measured once.
                points = sorted(
                    (c.layer.n * c.layer.geometry.pixels, c.median(OURS)) for c in cells
                )
                sizes, seconds = zip(*points, strict=True)
                found.append(Growth(sweep, *line, sizes, seconds))
    return found


def _complete(specs: Sequence[str]) -> set[str]:
    """Return the texts in the form that `Layer.spec` has."""
    from convcore.bench.layer import parse_layer

    return {parse_layer(spec).spec for spec in specs}
