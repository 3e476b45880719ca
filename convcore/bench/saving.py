"""What a run leaves on disk: everything as JSON, rows as CSV, a chart, a page."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from convcore.bench.cell import Outcome
from convcore.bench.promises import promises
from convcore.bench.record import as_data, as_rows
from convcore.bench.request import Request


@dataclass(frozen=True)
class Files:
    """Where to save what; None for not at all."""

    json: Path | None = None
    csv: Path | None = None
    plot: Path | None = None
    page: Path | None = None
    """A page in Markdown; its chart lies beside it, of the same name."""

    def asked(self) -> Iterator[tuple[str, Path]]:
        """Yield the files asked for, by option."""
        for name in ("json", "csv", "plot", "page"):
            if (file := getattr(self, name)) is not None:
                yield name, file


def save(
    files: Files,
    outcome: Outcome,
    request: Request,
    machine: Mapping[str, Any],
    command: str,
) -> Iterator[str]:
    """Save what was asked for; yield a line about each.

    Parameters
    ----------
    machine : mapping
        What the caller knows of it: ``cpu`` and ``date`` at least.
    command : str
        What the user ran; the page shows it.
    """
    data = as_data(outcome, request, machine)
    data["promises"] = [asdict(promise) for promise in promises(outcome, request)]
    if files.json is not None:
        _write(files.json, json.dumps(data, indent=1, allow_nan=False) + "\n")
        yield f"Saved to {files.json}"
    if files.csv is not None:
        _save_rows(files.csv, as_rows(data, request.peers))
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
