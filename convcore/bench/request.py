"""What a benchmark is asked to measure."""

from __future__ import annotations

from dataclasses import dataclass

from convcore.bench.layer import Layer


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
    budget: float | None = None
    """Seconds for everything; where they would not do, later cells get fewer rounds."""
    isa: str = "native"
    keep: bool = False
    seed: int = 0
