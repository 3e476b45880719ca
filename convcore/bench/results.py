"""Benchmark requests and results: cells, ratios, geometric means, growth with size."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from convcore.bench.layers import Layer, parse_layer
from convcore.bench.measuring import Quartiles, geometric_mean, paired_ratios, quartiles
from convcore.bench.peers import OURS, allowed_eps
from convcore.bench.suites import ALL_REAL, REAL, SWEEPS

# The peer whose time decides whether a cell is a small one.
_REFERENCE = "torch"
SMALL_SECONDS = 50e-6
# Below this a call's fixed cost shows; it is no part of what grows along a sweep.
LEAST_SECONDS = 100e-6
BETTER = "each side's better format"
# From this ratio on a cell counts as good.
GOOD = 0.9

# (layer, pass, threads, dtype): its cells, one for each memory format, are timed together.
CellGroup = tuple[Layer, str, int, str]


@dataclass(frozen=True)
class Request:
    """What to measure."""

    layers: tuple[Layer, ...]
    passes: tuple[str, ...]
    formats: tuple[str, ...]
    threads: tuple[int, ...]
    peers: tuple[str, ...]
    """Peers beside convcore."""
    rounds: int
    dtypes: tuple[str, ...] = ("float32",)
    suites: tuple[str, ...] = ()
    """The names of the suites that the layers are of; none for a user's own layers."""
    budget: float | None = None
    """Seconds for everything; where they would not do, later cells get fewer rounds."""
    isa: str = "native"
    strict: bool = False
    """Whether convcore is held to direct summation."""
    algorithm: str | None = None
    """What convcore is held to, in every pass that it can compute; None chooses freely."""
    keep: bool = False
    seed: int = 0

    @property
    def is_real(self) -> bool:
        """Whether layers of every kind are asked for, which tables sort by kind."""
        return bool({REAL, ALL_REAL} & set(self.suites))

    @property
    def problems(self) -> Iterator[tuple[Layer, str]]:
        """The layers, each in every dtype: what the oracle solves."""
        return itertools.product(self.layers, self.dtypes)

    @property
    def cell_groups(self) -> Iterator[CellGroup]:
        """The groups in measuring order; a worker reads a problem's arrays once."""
        for layer, dtype in self.problems:
            for name, threads in itertools.product(self.passes, self.threads):
                yield layer, name, threads, dtype


@dataclass
class Cell:
    """One layer, pass, format, number of threads and dtype, and what was measured there, by peer.

    The cells of a group, which differ in their format only, are timed in the same rounds: the i-th
    samples of all of them belong together.
    """

    layer: Layer
    pass_name: str
    format: str
    threads: int
    errors: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    dtype: str = "float32"
    algorithm: str = ""
    """What convcore computes by, as its plan calls it."""

    @property
    def group(self) -> CellGroup:
        """Return what the cell shares with the same cell in another format."""
        return self.layer, self.pass_name, self.threads, self.dtype

    @property
    def name(self) -> str:
        """Return a readable name of the cell."""
        dtype = "" if self.dtype == "float32" else f", {self.dtype}"
        place = f"{self.pass_name}, {self.format}, {counted(self.threads)}"
        return f"{self.layer.name}, {place}{dtype}"

    @property
    def wrong(self) -> list[str]:
        """Peers whose result was off; convcore also if it gave none."""
        off = {peer for peer, error in self.errors.items() if not error <= self.allowed(peer)}
        return sorted(off | ({OURS} & self.problems.keys()))

    def allowed(self, peer: str) -> float:
        """Return by how many eps a peer's result may be off here."""
        return allowed_eps(peer, self.algorithm)

    @property
    def gflops(self) -> float:
        """Return convcore's speed in 1e9 operations a second: two a multiply-add, none left out."""
        seconds = self.median(OURS)
        return 2e-9 * self.layer.geometry.multiply_adds / seconds if seconds else math.nan

    def median(self, peer: str) -> float:
        """Return a peer's seconds a call; 0 where it was not timed or not right."""
        if peer in self.wrong or peer in self.problems or not self.seconds.get(peer):
            return 0.0
        return quartiles(self.seconds[peer]).median

    @property
    def small(self) -> bool:
        """Whether PyTorch is so fast here that mostly the cost of a call is measured."""
        return 0.0 < self.median(_REFERENCE) < SMALL_SECONDS

    def ratio(self, peer: str) -> Quartiles | None:
        """Return a peer's time over convcore's; None where either was not timed or not right."""
        return ratio_between(self, self, peer)


def ratio_between(ours: Cell, theirs: Cell, peer: str) -> Quartiles | None:
    """Return a peer's time in one cell over convcore's in another of the same group."""
    if not ours.median(OURS) or not theirs.median(peer):
        return None
    # An interrupted group may have taken one more of theirs, in the other format.
    rounds = len(ours.seconds[OURS])
    return quartiles(paired_ratios(ours.seconds[OURS], theirs.seconds[peer][:rounds]))


@dataclass
class Outcome:
    """The measurements of a run so far, and the workers that made them."""

    cells: list[Cell] = field(default_factory=list)
    workers: dict[str, Any] = field(default_factory=dict)
    """A worker's description, by ``peer@threads``."""
    peaks: dict[int, dict[str, float]] = field(default_factory=dict)
    """GFLOP/s of a large matrix product, by threads and dtype."""
    finished: bool = False

    @property
    def wrong(self) -> list[Cell]:
        """Cells in which any result was wrong or missing."""
        return [cell for cell in self.cells if cell.wrong]

    def percent_of_peak(self, cell: Cell) -> float:
        """Return convcore's speed in per cent of the matrix product's; nan if either is unknown."""
        peak = self.peaks.get(cell.threads, {}).get(cell.dtype, math.nan)
        return 100.0 * cell.gflops / peak


@dataclass(frozen=True, slots=True)
class Ratio:
    """A peer's time over convcore's: above 1, convcore is the faster."""

    ours: Cell
    theirs: Cell
    """The same cell, or the same group in the format that is the peer's better one."""
    quartiles: Quartiles

    @property
    def name(self) -> str:
        """Return a readable name of the comparison."""
        if self.ours is self.theirs:
            return self.ours.name
        return f"{self.ours.name} beside {self.theirs.format}"


@dataclass(frozen=True, slots=True)
class Mean:
    """A geometric mean of ratios to one peer, over the cells of one kind, and the lowest ratio."""

    peer: str
    kind: str
    value: float
    cells: int
    share: float
    """The part of the cells whose ratio is at least `GOOD`."""
    worst: float
    worst_cell: str


def ratios(outcome: Outcome, peer: str) -> list[Ratio]:
    """Return the ratios to a peer in the same format; small cells are left out."""
    pairs = [(cell, cell.ratio(peer)) for cell in outcome.cells if not cell.small]
    return [Ratio(cell, cell, ratio) for cell, ratio in pairs if ratio is not None]


def better_ratios(outcome: Outcome, peer: str) -> list[Ratio]:
    """Return the ratios to a peer of each side's better format; small groups are left out.

    A side's better format is the one with the lower median.  Both formats take the same rounds, so
    these ratios are paired too.
    """
    found = []
    for cells in cell_groups(outcome):
        ours = [cell for cell in cells if cell.median(OURS)]
        theirs = [cell for cell in cells if cell.median(peer)]
        if ours and theirs and not any(cell.small for cell in cells):
            best = min(ours, key=lambda cell: cell.median(OURS))
            beside = min(theirs, key=lambda cell: cell.median(peer))
            if (ratio := ratio_between(best, beside, peer)) is not None:
                found.append(Ratio(best, beside, ratio))
    return found


def cell_groups(outcome: Outcome) -> list[list[Cell]]:
    """Return the cells in groups; those of a group differ only in their memory format."""
    return [list(cells) for _, cells in itertools.groupby(outcome.cells, lambda cell: cell.group)]


def means(outcome: Outcome, request: Request) -> list[Mean]:
    """Return every peer's geometric means: over all cells, kind by kind, and of better formats."""
    found = []
    for peer in request.peers:
        same = ratios(outcome, peer)
        kinds = [(kind, [r for r in same if belongs(r.ours)]) for kind, belongs in _kinds(request)]
        better = better_ratios(outcome, peer)
        kinds.insert(1, (BETTER, better))
        if request.is_real:
            for kind in sorted({layer.kind for layer in request.layers}):
                kinds.append((kind, [r for r in better if r.ours.layer.kind == kind]))
        for kind, values in kinds:
            if values:
                worst = min(values, key=lambda ratio: ratio.quartiles.median)
                mean = geometric_mean(ratio.quartiles.median for ratio in values)
                lowest = (worst.quartiles.median, worst.name)
                good = sum(ratio.quartiles.median >= GOOD for ratio in values)
                found.append(Mean(peer, kind, mean, len(values), good / len(values), *lowest))
    return found


def _kinds(request: Request) -> Iterator[tuple[str, Callable[[Cell], bool]]]:
    yield "all cells", lambda cell: True
    if len({layer.dense for layer in request.layers}) > 1:
        yield "dense layers", lambda cell: cell.layer.dense
        yield "grouped and depthwise", lambda cell: not cell.layer.dense
    for threads in request.threads:
        yield counted(threads), lambda cell, t=threads: cell.threads == t
    for form in request.formats:
        yield form, lambda cell, f=form: cell.format == f
    for name in request.passes:
        yield name, lambda cell, n=name: cell.pass_name == n
    if len(request.dtypes) > 1:
        for dtype in request.dtypes:
            yield dtype, lambda cell, d=dtype: cell.dtype == d


def slowest(outcome: Outcome, request: Request, count: int = 20) -> list[tuple[str, Ratio]]:
    """Return the lowest ratios beside each side's better format, with the peer of each."""
    found = [(peer, ratio) for peer in request.peers for ratio in better_ratios(outcome, peer)]
    return sorted(found, key=lambda each: each[1].quartiles.median)[:count]


def errors_by_algorithm(outcome: Outcome) -> dict[tuple[str, str], tuple[float, float]]:
    """Return convcore's largest error and what is allowed, both in eps, by algorithm and dtype."""
    found: dict[tuple[str, str], tuple[float, float]] = {}
    for cell in outcome.cells:
        if OURS in cell.errors:
            key = (cell.algorithm, cell.dtype)
            before, _ = found.get(key, (0.0, 0.0))
            found[key] = (max(before, cell.errors[OURS]), cell.allowed(OURS))
    return found


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


@dataclass(frozen=True, slots=True)
class Growth:
    """Time over size along one sweep, in one pass, format, number of threads and dtype."""

    sweep: str
    pass_name: str
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
        complete = {parse_layer(spec).spec for spec in specs}
        lines: dict[tuple[str, str, int, str], list[Cell]] = {}
        for cell in outcome.cells:
            if cell.layer.spec in complete and cell.median(OURS):
                line = (cell.pass_name, cell.format, cell.threads, cell.dtype)
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


_SHORT = {
    "input_grad": "input grad",
    "weight_grad": "weight grad",
    "contiguous": "NCHW",
    "channels_last": "NHWC",
}


def short(kind: str) -> str:
    """Return a pass's or a format's name as tables have it; anything else as it is."""
    return _SHORT.get(kind, kind)


def milliseconds(seconds: float) -> str:
    """Return three significant digits, without an exponent; a dash for none."""
    if not seconds:
        return "-"
    value = 1e3 * seconds
    return f"{value:.{max(0, 2 - math.floor(math.log10(value)))}f}"


def whole(value: float) -> str:
    """Return a whole number; a dash for nan."""
    return "-" if math.isnan(value) else f"{value:.0f}"


def median_and_quartiles(ratio: Quartiles | None) -> str:
    """Return the median, with the quartiles in brackets; an empty text for none."""
    return "" if ratio is None else f"{ratio.median:.2f} ({quartile_range(ratio)})"


def quartile_range(ratio: Quartiles) -> str:
    """Return the quartiles, from the lower to the upper."""
    return f"{ratio.low:.2f}-{ratio.high:.2f}"


def mebibytes(count: int | None) -> str:
    """Return bytes in MiB; a dash for none."""
    return "-" if not count else f"{count / 2**20:.0f} MiB"


def counted(threads: int) -> str:
    """Return a number of threads in words."""
    return f"{threads} thread{'' if threads == 1 else 's'}"
