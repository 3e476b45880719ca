"""What is measured: cells, and a run's outcome."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from convcore.bench.layer import Layer
from convcore.bench.pairing import Spread, paired_ratios, spread
from convcore.bench.peers import allowed_eps
from convcore.bench.request import Bout
from convcore.bench.text import counted

OURS = "convcore"
# The peer whose time decides whether a cell is a small one.
_REFERENCE = "torch"
SMALL_SECONDS = 50e-6


@dataclass
class Cell:
    """One layer, map, format, number of threads and dtype, and what was measured there, by peer.

    The cells of a bout, which differ in their format only, are timed in the same rounds: the i-th
    samples of all of them belong together.
    """

    layer: Layer
    map: str
    format: str
    threads: int
    errors: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    dtype: str = "float32"
    algorithm: str = ""
    """What convcore computes by, as its plan calls it."""

    @property
    def bout(self) -> Bout:
        """Return what the cell shares with the same cell in another format."""
        return self.layer, self.map, self.threads, self.dtype

    @property
    def key(self) -> tuple[str, str, str, int, str]:
        """Return what identifies the cell in another run, whatever the layer is called there."""
        return self.layer.spec, self.map, self.format, self.threads, self.dtype

    @property
    def name(self) -> str:
        """Return what identifies the cell, for people."""
        dtype = "" if self.dtype == "float32" else f", {self.dtype}"
        return f"{self.layer.name}, {self.map}, {self.format}, {counted(self.threads)}{dtype}"

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
        return spread(self.seconds[peer]).median

    @property
    def small(self) -> bool:
        """Whether PyTorch takes so little that what a call costs is what is measured."""
        return 0.0 < self.median(_REFERENCE) < SMALL_SECONDS

    def ratio(self, peer: str) -> Spread | None:
        """Return a peer's time over convcore's; None where either was not timed or not right."""
        return ratio_between(self, self, peer)


def ratio_between(ours: Cell, theirs: Cell, peer: str) -> Spread | None:
    """Return a peer's time in one cell over convcore's in another of the same bout."""
    if not ours.median(OURS) or not theirs.median(peer):
        return None
    # An interrupted bout may have taken one more of theirs, in the other format.
    rounds = len(ours.seconds[OURS])
    return spread(paired_ratios(ours.seconds[OURS], theirs.seconds[peer][:rounds]))


@dataclass
class Outcome:
    """What a run has measured so far, and with what."""

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
