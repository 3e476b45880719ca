"""How long a benchmark will take: for the progress bar, and to keep within a budget."""

from __future__ import annotations

from dataclasses import dataclass

from convcore.bench.layer import Layer
from convcore.bench.request import Request

# A median of fewer rounds is none.
LEAST_ROUNDS = 3


@dataclass(frozen=True)
class Step:
    """Progress: what is being done, and how much of the whole has been."""

    text: str
    done: float
    """Between 0 and 1."""
    left: float | None = None
    """Seconds that the rest will take; None as long as nobody knows."""


class Effort:
    """A guess at how long each step takes, and how much of the whole is done."""

    def __init__(self, request: Request) -> None:
        self._request = request
        cells = len(request.maps) * len(request.formats) * len(request.threads)
        self._whole = sum(
            self.of_oracle(layer) + cells * self.of_cell(layer) for layer, _ in request.problems
        )
        self._steps_done = 0.0
        self._mark = (0.0, 0.0)

    @property
    def done(self) -> float:
        """Return how much of the whole has been done, between 0 and 1."""
        return min(1.0, self._steps_done / self._whole)

    def step(self, text: str, effort: float, now: float | None = None) -> Step:
        """Add a step's effort to what has been done; return the progress."""
        self._steps_done += effort
        left = None if now is None else self.ahead(now)
        return Step(text, self.done, left or None)

    def mark(self, now: float) -> None:
        """Measure the pace from this moment: what comes next has a pace of its own."""
        self._mark = (now, self._steps_done)

    def ahead(self, now: float) -> float:
        """Return how many seconds the rest takes at the pace since the mark; 0 if there is none."""
        then, steps_then = self._mark
        steps = self._steps_done - steps_then
        return (now - then) / steps * (self._whole - self._steps_done) if steps else 0.0

    def of_oracle(self, layer: Layer) -> float:
        """About seconds: the slow oracle, twice a map, at some 20 GFLOP/s."""
        return 0.05 + 2 * len(self._request.maps) * 1e-10 * layer.geometry.multiply_adds

    def of_cell(self, layer: Layer) -> float:
        """About seconds: a sample's and a pause's 13 ms a turn, more for calls that last longer."""
        turns = self._request.rounds * (1 + len(self._request.peers))
        return turns * (0.013 + 5e-12 * layer.geometry.multiply_adds)


def rounds_within(rounds: int, left: float | None, ahead: float) -> int:
    """Return how many rounds the next cell gets.

    Parameters
    ----------
    rounds : int
        What a cell gets if there is time.
    left : float or None
        Seconds of the budget that are left; None for as many as it takes.
    ahead : float
        Seconds that the rest would take at the pace so far.
    """
    if left is None or ahead <= left:
        return rounds
    return min(rounds, max(LEAST_ROUNDS, int(rounds * left / ahead)))
