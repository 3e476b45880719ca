"""Events summed by their names, as a table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from convcore._hints import hinted
from convcore.profiler.recording import Event

_HEAD = ("Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "# of Calls")
_UNITS = {"us": 1.0, "ms": 1e3, "s": 1e6}
_TIMES = ("cpu_time_total", "self_cpu_time_total", "cpu_time", "count")
_OF_DEVICES = re.compile(r"(self_)?(cuda|device|xpu)_time(_total)?")  # of which there are none


@dataclass
class Average:
    """All events of a name: how many, and their microseconds, with and without what is inside."""

    key: str
    count: int = 0
    cpu_time_total: float = 0.0
    self_cpu_time_total: float = 0.0

    @property
    def cpu_time(self) -> float:
        """Microseconds of one event on average."""
        return self.cpu_time_total / self.count

    def __getattr__(self, name: str) -> float:
        if _OF_DEVICES.fullmatch(name):
            return 0.0
        error = AttributeError(f"a profile has no {name!r}: it has {', '.join(_TIMES)}")
        raise hinted(error, "convcore.inspection.profile(net) measures memory and multiply-adds")


class EventList(list[Any]):
    """Averages, which print as a table."""

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all."""
        return sum(one.self_cpu_time_total for one in self)

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """Return a table of the first ``row_limit`` names.

        Parameters
        ----------
        sort_by : {"cpu_time_total", "self_cpu_time_total", "cpu_time", "count"}, optional
            What stands first, the largest; by default what began first.
        row_limit : int
            All for -1.
        max_name_column_width : int
        header : str, optional
            A line above.
        time_unit : {"s", "ms", "us"}, optional
            By default each number's own.
        max_src_column_width, max_shapes_column_width, top_level_events_only
            Ignored.

        Raises
        ------
        AttributeError
            ``sort_by`` names something that is not measured.
        """
        rows = list(self) if sort_by is None else sorted(self, key=lambda e: -getattr(e, sort_by))
        whole = self.self_cpu_time_total
        cells = [
            (
                _short(row.key, max_name_column_width),
                f"{row.self_cpu_time_total / (whole or 1):.2%}",
                _time(row.self_cpu_time_total, time_unit),
                f"{row.cpu_time_total / (whole or 1):.2%}",
                _time(row.cpu_time_total, time_unit),
                _time(row.cpu_time, time_unit),
                str(row.count),
            )
            for row in (rows if row_limit < 0 else rows[:row_limit])
        ]
        columns = list(zip(("Name", *_HEAD), *cells, strict=True))
        widths = [max(map(len, column)) for column in columns]
        rule = "  ".join("-" * width for width in widths)
        head, *body = (
            "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
            for line in (("Name", *_HEAD), *cells)
        )
        top = [header] if header else []
        total = f"Self CPU time total: {_time(whole, time_unit)}"
        return "\n".join([*top, rule, head, rule, *body, rule, total, ""])

    def __str__(self) -> str:
        return self.table()


def averages(events: Iterable[Event]) -> EventList:
    """Return the sums of events by name; steps have one name."""
    found: dict[str, Average] = {}
    inside: set[int] = set()
    ordered = sorted(events, key=lambda event: (event.start, -event.end))
    open_: list[Event] = []
    for number, event in enumerate(ordered):  # the time of a name inside itself counts once
        while open_ and open_[-1].end <= event.start:
            open_.pop()
        if any(one.name == event.name for one in open_):
            inside.add(number)
        open_.append(event)
    for number, event in enumerate(ordered):
        name = "ProfilerStep*" if event.kind == "step" else event.name
        row = found.setdefault(name, Average(name))
        row.count += 1
        row.self_cpu_time_total += event.own / 1e3
        row.cpu_time_total += 0 if number in inside else (event.end - event.start) / 1e3
    return EventList(found.values())


def _short(name: str, width: int) -> str:
    return name if width < 3 or len(name) <= width else f"{name[: width - 3]}..."


def _time(microseconds: float, unit: str | None) -> str:
    unit = unit or ("s" if microseconds >= 1e6 else "ms" if microseconds >= 1e3 else "us")
    return f"{microseconds / _UNITS[unit]:.3f}{unit}"
