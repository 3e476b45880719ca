"""What a benchmark is asked to measure."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from convcore.bench.layer import Layer

# A layer, a map, a number of threads, a dtype: what the formats of are timed together.
Bout = tuple[Layer, str, int, str]


@dataclass(frozen=True)
class Request:
    """What to measure."""

    layers: tuple[Layer, ...]
    maps: tuple[str, ...]
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
    keep: bool = False
    seed: int = 0

    @property
    def problems(self) -> Iterator[tuple[Layer, str]]:
        """The layers, each in every dtype: what the oracle solves."""
        return itertools.product(self.layers, self.dtypes)

    @property
    def bouts(self) -> Iterator[Bout]:
        """What is measured, in order; a worker reads a problem's arrays once."""
        for layer, dtype in self.problems:
            for name, threads in itertools.product(self.maps, self.threads):
                yield layer, name, threads, dtype
