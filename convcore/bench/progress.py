"""How far a run is, and what time is left: a bar in a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable

from convcore.bench.effort import Step
from convcore.bench.text import clock

_LINE_SECONDS = 20.0


def follow(steps: Iterable[Step]) -> None:
    """Take all steps, and show each on standard error."""
    if sys.stderr.isatty():
        _with_bar(steps)
    else:
        _with_lines(steps)


def _with_bar(steps: Iterable[Step]) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TaskProgressColumn(),
        TextColumn("{task.fields[left]}"),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task("starting", total=1.0, left="")
        for step in steps:
            bar.update(task, description=step.text, completed=step.done, left=_left(step))


def _with_lines(steps: Iterable[Step]) -> None:
    said = time.monotonic()
    for step in steps:
        if time.monotonic() - said >= _LINE_SECONDS:
            said = time.monotonic()
            print(f"{step.done:4.0%} {_left(step)} {step.text}", file=sys.stderr, flush=True)


def _left(step: Step) -> str:
    return "" if step.left is None else f"{clock(step.left)} left"
