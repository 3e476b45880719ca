"""A profile as a trace that Perfetto and Chrome's about:tracing show."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from convcore.inference.execution_plan import StepRecord
from convcore.inspection.profiling._recorder import BACKWARD, ENTER, LEAVE, PLAN, Recorder

# Start and end in nanoseconds, category, name, arguments.
Span = tuple[int, int, str, str, dict]


def write(recorder: Recorder, end: int, path: str | os.PathLike[str]) -> None:
    """Write the events of a profile."""
    begun = min((event[1] for event in recorder.events), default=end)
    write_spans(_spans(recorder, end), path, begun)


def write_spans(
    found: Sequence[Span], path: str | os.PathLike[str], begun: int | None = None
) -> None:
    """Write spans as JSON in the Trace Event Format: complete events, times in microseconds.

    Times are those since ``begun``, by default the first start.

    References
    ----------
    "Trace Event Format", the Chromium project, for ``ph``, ``ts``, ``dur``, ``pid`` and ``tid``.
    """
    ids = {"pid": os.getpid(), "tid": 1}
    trace: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "ts": 0, **ids, "args": {"name": "convcore"}},
        {"ph": "M", "name": "thread_name", "ts": 0, **ids, "args": {"name": "forward, backward"}},
    ]
    if begun is None:
        begun = min((span[0] for span in found), default=0)
    spans = [
        {
            "ph": "X", "cat": category, "name": name, "ts": _microseconds(start - begun),
            "dur": _microseconds(stop - start), **ids, "args": args,
        }
        for start, stop, category, name, args in found
    ]  # fmt: skip
    trace += sorted(spans, key=lambda span: (span["ts"], -span["dur"]))
    whole = {"traceEvents": trace, "displayTimeUnit": "ms"}
    Path(path).write_text(json.dumps(whole), encoding="utf-8")


def _microseconds(nanoseconds: int) -> float:
    """Return a number whose thousandfold is that many, also for readers that cut digits off.

    Perfetto drops a span that ends after the one around it, be it by a nanosecond; its older
    versions cut off.
    """
    found = nanoseconds / 1e3
    return found if int(found * 1000.0) == nanoseconds else math.nextafter(found, math.inf)


def _spans(recorder: Recorder, end: int) -> list[Span]:
    """Return (start, end, category, name, arguments) of each module's call and each operation."""
    found: list[Span] = []
    inside: list[tuple[int, int]] = []

    def left(time: int) -> None:
        start, number = inside.pop()
        name, type = recorder.names[number], recorder.types[number]
        found.append((start, time, "module", name or "(model)", {"type": type}))

    for event in recorder.events:
        if event[0] == ENTER:
            inside.append(event[1:])
        elif event[0] == LEAVE:
            left(event[1])
        elif event[0] == PLAN:
            found += _steps(*event[1:])
        else:
            _, start, stop, operation = event[:4]
            backward = event[0] == BACKWARD
            name = operation.name if backward else operation.name.partition("Backward")[0]
            args: dict[str, Any] = {} if backward else {"bytes": operation.n_bytes}
            if operation.call is not None:
                args["multiply_adds"] = operation.call.multiply_adds
            found.append((start, stop, "backward" if backward else "forward", name, args))
    while inside:
        left(end)
    return found


def _steps(start: int, ends: Sequence[int], records: Sequence[StepRecord]) -> Iterator[Span]:
    """Yield a span for each step of a plan."""
    for end, record in zip(ends, records, strict=True):
        args: dict[str, Any] = {"type": record.type, "bytes": record.n_bytes}
        if record.multiply_adds:
            args |= {"multiply_adds": record.multiply_adds, "algorithm": record.algorithm}
        yield start, end, "step", " + ".join(record.layers) or record.type, args
        start = end
