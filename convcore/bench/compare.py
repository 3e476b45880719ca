"""Two runs side by side: which cells have become slower, beyond the noise.

Seconds of two runs say as much about the machine as about convcore, so ratios to a peer are what is
compared.  A cell has fallen behind if

- the quartile ranges of its ratio in the two runs do not overlap, the newer one being below, and
- its median ratio is lower by more than `TOLERANCE`.

Both, because quartiles of a quiet run can be very close, and a median of a noisy one far off.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from convcore.bench.pairing import geometric_mean
from convcore.bench.text import counted

TOLERANCE = 0.1
_KEY = ("spec", "map", "format", "threads", "dtype")


@dataclass(frozen=True, slots=True)
class Change:
    """A cell's ratio to a peer in an older and a newer run."""

    cell: str
    peer: str
    before: Mapping[str, float]
    after: Mapping[str, float]

    @property
    def factor(self) -> float:
        """Return the newer median over the older: below 1, convcore has become slower."""
        return self.after["median"] / self.before["median"]

    @property
    def regressed(self) -> bool:
        """Whether convcore has become slower beyond the noise."""
        return self.after["high"] < self.before["low"] and self.factor < 1 - TOLERANCE

    @property
    def improved(self) -> bool:
        """Whether convcore has become faster beyond the noise."""
        return self.after["low"] > self.before["high"] and self.factor > 1 / (1 - TOLERANCE)


@dataclass(frozen=True)
class Comparison:
    """All cells that two runs share."""

    changes: list[Change]
    warnings: list[str]

    @property
    def regressions(self) -> list[Change]:
        """Return the cells that have become slower, the worst first."""
        return sorted((c for c in self.changes if c.regressed), key=lambda c: c.factor)

    @property
    def improvements(self) -> list[Change]:
        """Return the cells that have become faster, the most improved first."""
        return sorted((c for c in self.changes if c.improved), key=lambda c: -c.factor)

    @property
    def mean(self) -> float:
        """Return the geometric mean of the factors; nan for none."""
        return geometric_mean(change.factor for change in self.changes)


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> Comparison:
    """Compare two runs' data, as `convcore.bench.record.as_data` makes them."""
    older = {_key(cell): cell for cell in before["cells"]}
    changes = [
        Change(_name(cell), peer, older[_key(cell)]["ratio"][peer], ratio)
        for cell in after["cells"]
        if _key(cell) in older
        for peer, ratio in cell["ratio"].items()
        if peer in older[_key(cell)]["ratio"]
    ]
    return Comparison(changes, list(_differences(before, after)))


def check_readable(data: Any, version: int) -> None:
    """Raise a ValueError unless the data are a run's of this version."""
    if not isinstance(data, dict) or "cells" not in data:
        raise ValueError("is no file that convcore bench --json has saved")
    if data.get("version") != version:
        raise ValueError(f"has version {data.get('version')}, {version} is read")


def _key(cell: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(cell[name] for name in _KEY)


def _name(cell: Mapping[str, Any]) -> str:
    return f"{cell['layer']}, {cell['map']}, {cell['format']}, {counted(cell['threads'])}"


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Yield what makes the two runs hard to compare."""
    for place, name in (("machine", "cpu"), ("request", "isa"), ("request", "strict")):
        old, new = before[place].get(name), after[place].get(name)
        if old != new:
            yield f"{name} was {old} and is {new}"
    for worker in before["workers"].keys() & after["workers"].keys():
        old, new = (run["workers"][worker]["loaded"] for run in (before, after))
        for name in sorted(old.keys() & new.keys() - {"convcore"}):
            if old[name] != new[name]:
                yield f"{worker}: {name} was {old[name]} and is {new[name]}"
