"""Reports of training on standard error: plain lines, or a table that changes in place."""

from __future__ import annotations

import math
import sys
from importlib.util import find_spec
from typing import Any

from convcore.engine.runtime._restoring import Restoring
from convcore.engine.runtime.restoring import Calls
from convcore.inspection.live.report import Layer, Report

_HINT = "NaN or infinity: `convcore.inspection.find_nan` says where it is made"
_BAR = 20
_LOSSES = 60
_BLOCKS = "▁▂▃▄▅▆▇█"
_LEAST_ROWS = 4
_FRAME = 7  # lines of the screen that are no layers


def line_of(report: Report) -> str:
    """Return a report as one line."""
    parts = [f"step {report.step}", f"loss {_number(report.loss)}"]
    total, extremes = report.total, report.extremes()
    if extremes is not None:
        least, largest = extremes
        parts.append(f"gradient norm {_number(total.gradient)}")
        parts.append(f"largest {_number(report.layers[largest].gradient)} in {largest}")
        parts.append(f"least {_number(report.layers[least].gradient)} in {least}")
    if total.units:
        parts.append(f"dead units {_dead(total)}")
    if not is_finite(report):
        parts.append(_HINT)
    return "  ".join(parts)


def is_finite(report: Report) -> bool:
    """Return whether the loss and all gradients are finite."""
    values = [report.loss, report.total.gradient]
    return all(value is None or math.isfinite(value) for value in values)


def view() -> Any:
    """Return an object with ``show(report)``: a table in a terminal with rich, or lines."""
    return Screen() if sys.stderr.isatty() and find_spec("rich") is not None else Lines()


class _View(Restoring):
    """A context in which reports are shown."""

    def _back(self) -> Calls:
        return ((self.close, ()),)

    def _enter(self) -> Any:
        self.open()
        return self

    def open(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class Lines(_View):
    """One line per report, for pipes and files."""

    def show(self, report: Report) -> None:
        """Print a report."""
        print(line_of(report), file=sys.stderr, flush=True)


class Screen(_View):
    """A table of the last report, below what the program prints."""

    _live: Any = None

    def open(self) -> None:
        """Begin to draw."""
        from rich.console import Console
        from rich.live import Live

        self._losses: list[float] = []
        self._console = Console(stderr=True)
        prints = sys.stdout.isatty()  # a file or pipe gets what is printed meanwhile
        live = Live(console=self._console, auto_refresh=False, redirect_stdout=prints)
        self._live = live
        live.__enter__()

    def close(self) -> None:
        """Leave the last table below what was printed; it may be called again."""
        if self._live is not None:
            self._live.__exit__(None, None, None)
            self._live = None

    def show(self, report: Report) -> None:
        """Draw a report."""
        if report.loss is not None and math.isfinite(report.loss):
            self._losses = [*self._losses, report.loss][-_LOSSES:]
        most = max(self._console.height - _FRAME, _LEAST_ROWS)
        self._live.update(table_of(report, self._losses, most), refresh=True)


def table_of(report: Report, losses: list[float], most: int) -> Any:
    """Return a report as rich's table, of so many rows at most; bars are of norms' logarithms."""
    from rich.table import Table

    speed = report.step / report.seconds if report.seconds else 0.0
    title = f"step {report.step}  {speed:.1f} a second  loss {_number(report.loss)}"
    caption = "" if is_finite(report) else _HINT
    table = Table(title=f"{title}  {curve(losses)}", caption=caption, title_justify="left")
    table.add_column("layer", overflow="fold")
    table.add_column("gradient norm", justify="right")
    table.add_column("", width=_BAR)
    table.add_column("dead units", justify="right")
    rows = report.in_rows(most)
    norms = [one.gradient for one in rows.values() if one.gradient and math.isfinite(one.gradient)]
    for name, one in rows.items():
        cells = _number(one.gradient) if one.gradient is not None else "", _bar(one.gradient, norms)
        table.add_row(name, *cells, _dead(one) if one.units else "")
    return table


def curve(values: list[float]) -> str:
    """Return values as a line of blocks, the least the lowest."""
    if not values:
        return ""
    least, span = min(values), max(values) - min(values) or 1.0
    return "".join(_BLOCKS[int((one - least) / span * (len(_BLOCKS) - 1))] for one in values)


def _bar(norm: float | None, norms: list[float]) -> str:
    if not norm or not math.isfinite(norm):
        return ""
    low, high = math.log10(min(norms)), math.log10(max(norms))
    share = (math.log10(norm) - low) / (high - low) if high > low else 1.0
    return "█" * (1 + int(share * (_BAR - 1)))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _dead(layer: Layer) -> str:
    return f"{layer.dead} of {layer.units}"
