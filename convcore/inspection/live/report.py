"""What is known of a training step: its loss, its layers' gradients and dead units."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class Layer:
    """A layer's gradient norm, None where it has none, and its dead units of all units.

    A unit is a feature or channel of a ReLU's result; it is dead where that is 0 in the whole step.
    """

    gradient: float | None = None
    dead: int = 0
    units: int = 0

    def add(self, other: Layer) -> None:
        """Take in another layer: the norm is that of both gradients together."""
        if other.gradient is not None:
            self.gradient = math.hypot(self.gradient or 0.0, other.gradient)
        self.dead += other.dead
        self.units += other.units


@dataclass
class Report:
    """One step: its number from 1 on, seconds since the beginning, loss, layers by name."""

    step: int
    seconds: float
    loss: float | None
    layers: dict[str, Layer] = field(default_factory=dict)

    @property
    def total(self) -> Layer:
        """All layers as one."""
        return joined(self.layers.values())

    def extremes(self) -> tuple[str, str] | None:
        """Return the names of the layers with the least and the largest gradient; None without.

        NaN and infinity are the largest.
        """
        norms = {k: one.gradient for k, one in self.layers.items() if one.gradient is not None}
        if not norms:
            return None
        ranks = {name: (not math.isfinite(norm), norm) for name, norm in norms.items()}
        return min(ranks, key=ranks.__getitem__), max(ranks, key=ranks.__getitem__)

    def in_rows(self, most: int) -> dict[str, Layer]:
        """Return the layers, those with equal beginnings of their names as one until they fit."""
        deepest = max((name.count(".") + 1 for name in self.layers), default=0)
        for depth in range(deepest, 0, -1):
            groups: dict[str, list[Layer]] = {}
            for name, one in self.layers.items():
                groups.setdefault(".".join(name.split(".")[:depth]), []).append(one)
            if len(groups) <= most:
                return {name: joined(some) for name, some in groups.items()}
        return {"(all layers)": self.total} if self.layers else {}


def joined(layers: Iterable[Layer]) -> Layer:
    """Return layers as one."""
    found = Layer()
    for one in layers:
        found.add(one)
    return found
