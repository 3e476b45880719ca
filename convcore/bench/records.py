"""Save a run as JSON, CSV, chart and page; compare two runs.

Seconds of two runs say as much about the machine as about convcore, so ratios to a peer are what is
compared.  A cell has become slower if

- the quartile ranges of its ratio in the two runs do not overlap, the newer one being below, and
- its median ratio is lower by more than `TOLERANCE`.

Both, because quartiles of a quiet run can be very close, and a median of a noisy one far off.
"""

from __future__ import annotations

import csv
import json
import math
import platform
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from convcore.bench.measuring import geometric_mean, quartiles
from convcore.bench.peers import OURS
from convcore.bench.promises import promises
from convcore.bench.results import (
    Cell,
    Outcome,
    Request,
    better_ratios,
    counted,
    errors_by_algorithm,
    means,
)

# Of the file's layout; raised when a reader of older files would misread a newer one.
VERSION = 2
TOLERANCE = 0.1
# What identifies a cell in another run; "map" is a pass's name in files of every version.
_KEY = ("spec", "map", "format", "threads", "dtype")


def as_data(outcome: Outcome, request: Request, machine: Mapping[str, Any]) -> dict[str, Any]:
    """Return everything as JSON's types; numbers that JSON does not have become None.

    ``machine`` is what the caller knows about it: the CPU's name, its load.
    """
    names = ("suites", "rounds", "budget", "isa", "strict", "algorithm", "keep", "seed")
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
                "ratio": asdict(ratio.quartiles),
            }
            for peer in request.peers
            for ratio in better_ratios(outcome, peer)
        ],
        "means": [asdict(mean) for mean in means(outcome, request)],
        "errors": [
            {"algorithm": algorithm, "dtype": dtype, "eps": _finite(error), "allowed_eps": allowed}
            for (algorithm, dtype), (error, allowed) in errors_by_algorithm(outcome).items()
        ],
    }


def _named(cell: Cell) -> dict[str, Any]:
    return {
        "layer": cell.layer.name,
        "spec": cell.layer.spec,
        "map": cell.pass_name,
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
        "median_seconds": {p: quartiles(seconds).median for p, seconds in cell.seconds.items()},
        "gflops": _finite(cell.gflops),
        "percent_of_peak": _finite(outcome.percent_of_peak(cell)),
        "small": cell.small,
        "ratio": {p: asdict(r) for p, r in found.items() if r is not None},
        "wrong": cell.wrong,
        "problems": cell.problems,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _row(cell: Mapping[str, Any], peers: tuple[str, ...]) -> dict[str, Any]:
    """Return one of `as_data`'s cells as a flat row for a spreadsheet."""
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


@dataclass(frozen=True)
class Files:
    """Where to save what; None for not at all."""

    json: Path | None = None
    csv: Path | None = None
    plot: Path | None = None
    page: Path | None = None
    """A page in Markdown; its chart lies beside it, of the same name."""


def save(
    files: Files, outcome: Outcome, request: Request, machine: Mapping[str, Any], command: str
) -> Iterator[str]:
    """Save what was asked for; yield a line about each.

    Parameters
    ----------
    machine : mapping
        What the caller knows of it: ``cpu`` and ``date`` at least.
    command : str
        What the user ran; the page shows it, and the JSON has it.
    """
    data = {**as_data(outcome, request, machine), "command": command}
    data["promises"] = [asdict(promise) for promise in promises(outcome, request)]
    if files.json is not None:
        _write(files.json, json.dumps(data, indent=1, allow_nan=False) + "\n")
        yield f"Saved to {files.json}"
    if files.csv is not None:
        _save_rows(files.csv, [_row(cell, request.peers) for cell in data["cells"]])
        yield f"Saved to {files.csv}"
    if files.plot is not None:
        yield _draw(files.plot, outcome, request)[1]
    if files.page is not None:
        from convcore.bench.page import as_page

        picture = files.page.with_suffix(".svg")
        drawn, said = _draw(picture, outcome, request)
        name = picture.name if drawn else ""
        _write(files.page, as_page(outcome, request, machine, command, name))
        yield said
        yield f"Saved to {files.page}"


def _draw(file: Path, outcome: Outcome, request: Request) -> tuple[bool, str]:
    """Draw the chart; return whether there was anything to draw, and a line about it."""
    from convcore.bench.chart import save_chart

    try:
        save_chart(file, outcome, request)
    except ValueError as error:
        return False, f"No chart: {error}"
    return True, f"Saved to {file}"


def _save_rows(file: Path, rows: list[dict[str, Any]]) -> None:
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]) if rows else ["layer"])
        writer.writeheader()
        writer.writerows(rows)


def _write(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")


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
    """Compare two runs' data, as `as_data` makes them."""
    older = {_key(cell): cell for cell in before["cells"]}
    changes = [
        Change(_name(cell), peer, older[_key(cell)]["ratio"][peer], ratio)
        for cell in after["cells"]
        if _key(cell) in older
        for peer, ratio in cell["ratio"].items()
        if peer in older[_key(cell)]["ratio"]
    ]
    return Comparison(changes, list(_differences(before, after)))


def check_readable(data: Any) -> None:
    """Raise a ValueError unless the data are a run's of this version."""
    if not isinstance(data, dict) or "cells" not in data:
        raise ValueError("is no file that convcore bench --json has saved")
    if data.get("version") != VERSION:
        raise ValueError(f"has version {data.get('version')}, {VERSION} is read")


def _key(cell: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(cell[name] for name in _KEY)


def _name(cell: Mapping[str, Any]) -> str:
    return f"{cell['layer']}, {cell['map']}, {cell['format']}, {counted(cell['threads'])}"


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Yield warnings about differences that make two runs hard to compare."""
    held = (("request", name) for name in ("isa", "strict", "algorithm"))
    for place, name in (("machine", "cpu"), *held):
        old, new = before[place].get(name), after[place].get(name)
        if old != new:
            yield f"{name} was {old} and is {new}"
    for worker in before["workers"].keys() & after["workers"].keys():
        old, new = (run["workers"][worker]["loaded"] for run in (before, after))
        for name in sorted(old.keys() & new.keys() - {"convcore"}):
            if old[name] != new[name]:
                yield f"{worker}: {name} was {old[name]} and is {new[name]}"
