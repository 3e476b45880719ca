"""Progress on standard error: a bar on a terminal, else a line every few seconds."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

LINE_SECONDS = 5.0


@dataclass(frozen=True)
class Step:
    """Progress: what is being done, and how much of the whole has been."""

    text: str
    done: float
    """Between 0 and 1."""
    left: float | None = None
    """Seconds that the rest will take; None as long as nobody knows."""


@dataclass(kw_only=True)
class Guess:
    """A guess at how long a run takes, in seconds, and how much of that is done."""

    started: float = field(default_factory=time.monotonic)
    _done: float = 0.0

    @property
    def whole(self) -> float:
        """Return about how many seconds all of it takes."""
        raise NotImplementedError

    def step(self, text: str, seconds: float) -> Step:
        """Return the progress, before a step of so many seconds.

        What is left goes by the clock the more, the more is done: the first steps start processes.
        """
        gone, done = time.monotonic() - self.started, self._done
        self._done += seconds
        share, rest = min(1.0, done / self.whole), max(0.0, self.whole - done)
        left = (gone / done * share + 1 - share) * rest if done > 0 else rest
        return Step(text, share, left)


def follow(steps: Iterable[Step]) -> None:
    """Take all steps, and show each on standard error."""
    if sys.stderr.isatty() and importlib.util.find_spec("rich"):
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
        redirect_stdout=sys.stdout.isatty(),  # a file or pipe gets what is printed meanwhile
    )
    with bar:
        task = bar.add_task("starting", total=1.0, left="")
        for step in steps:
            bar.update(task, description=step.text, completed=step.done, left=_left(step))


def _with_lines(steps: Iterable[Step]) -> None:
    said = time.monotonic()
    for step in steps:
        if time.monotonic() - said >= LINE_SECONDS:
            said = time.monotonic()
            print(f"{step.done:4.0%} {_left(step)} {step.text}", file=sys.stderr, flush=True)


def _left(step: Step) -> str:
    return "" if step.left is None else f"{clock(step.left)} left"


def clock(seconds: float) -> str:
    """Return minutes and seconds, as ``2:05``."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"


def plural(count: int, word: str) -> str:
    """Return a number of things: ``1 cell``, ``2 cells``."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def about(seconds: float) -> str:
    """Return a duration in words, no more exact than a guess is."""
    if seconds < 8:
        return "a few seconds"
    if seconds < 50:
        return f"about {max(10, round(seconds, -1)):.0f} seconds"
    if seconds < 90:
        return "about a minute"
    if seconds < 3600:
        return f"about {round(seconds / 60)} minutes"
    return f"about {seconds / 3600:.1f} hours"
