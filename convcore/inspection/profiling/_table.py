"""The printed form of a profile: a tree of modules and operations, at most 100 columns wide."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from convcore.inspection._optimized import OPTIMIZED

if TYPE_CHECKING:
    from convcore.inspection.profiling._tree import ProfileRow
    from convcore.inspection.profiling.profile import Profile

_NAME = 31
_HEAD = ("calls", "forward", "backward", "share", "MiB", "M-adds", "GFLOP/s")
_WIDTHS = (6, 9, 9, 6, 8, 9, 8)
_ALGORITHM = 14
_SLOWEST = 3
_LABEL = 15  # characters before what a line below the tree says
_WIDEST = 100
_ONE_STEP = (
    "a net of optimize_for_inference is one step here, and what it does is not counted; its first "
    "call of a kind of input makes a plan. Profile the net as it was to see its layers"
)
_BY_LAYERS = (
    "the layers of a net of optimize_for_inference are called one by one in a profile; outside of "
    "one, by its plan, a call takes less"
)
_MUCH_WAITED = 0.05  # of the time


def text(profile: Profile, depth: int | None = None) -> str:
    """Return a profile as text; ``depth`` is the depth of the printed tree."""
    total = profile.rows.seconds
    cells = [
        (name, _cells(row, total), _algorithm(row)) for name, row in _shown(profile.rows, 0, depth)
    ]
    head = "times in ms".ljust(_NAME) + "".join(
        h.rjust(w) for h, w in zip(_HEAD, _WIDTHS, strict=True)
    )
    rule = "-" * (_NAME + sum(_WIDTHS) + _ALGORITHM)
    lines = [_line(name, numbers, algorithm) for name, numbers, algorithm in cells]
    return "\n".join([f"{head}  algorithm", rule, *lines, rule, *_totals(profile)])


def _shown(row: ProfileRow, level: int, depth: int | None) -> Iterator[tuple[str, ProfileRow]]:
    """Yield the printed name of each row and the row."""
    if depth is not None and level > depth:
        return
    for child in row.children:
        name = child.name.rpartition(".")[2] or "(model)"
        yield "  " * level + (name if child.is_module else f"- {name}"), child
        # A layer that is one operation takes one line.
        if len(child.children) > 1 or any(c.is_module for c in child.children):
            yield from _shown(child, level + 1, depth)


def _cells(row: ProfileRow, total: float) -> tuple[str, ...]:
    share = f"{row.seconds / total:.0%}" if total else "-"
    costly = row.multiply_adds
    return (
        f"{row.calls}",
        f"{1e3 * row.forward:.2f}",
        f"{1e3 * row.backward:.2f}" if row.backward else "-",
        share,
        f"{row.bytes / 2**20:.2f}" if row.bytes else "-",
        f"{costly / 1e6:,.1f}" if costly else "-",
        f"{row.gflops:.1f}" if costly else "-",
    )


def _algorithm(row: ProfileRow) -> str:
    own = row.algorithms or (row.children[0].algorithms if len(row.children) == 1 else {})
    return own.get("forward", "")


def _line(name: str, numbers: tuple[str, ...], algorithm: str) -> str:
    name = name if len(name) < _NAME else name[: _NAME - 4] + "..."
    cells = "".join(cell.rjust(width) for cell, width in zip(numbers, _WIDTHS, strict=True))
    return f"{name:<{_NAME}}{cells}  {algorithm[: _ALGORITHM - 2]}".rstrip()


def _totals(profile: Profile) -> list[str]:
    rows = profile.rows
    rest = max(0.0, profile.seconds - rows.forward - rows.backward)
    threads = f"{profile.threads} thread" + ("s" if profile.threads != 1 else "")
    lines = [
        f"Time           {1e3 * rows.forward:.2f} ms forward, {1e3 * rows.backward:.2f} ms "
        f"backward, {1e3 * rest:.2f} ms around them; {threads}",
        f"Multiply-adds  {rows.multiply_adds:,} forward, {rows.backward_multiply_adds:,} backward",
        f"Speed          {_speed(profile)}",
        f"Memory         {profile.peak_bytes / 2**20:.2f} MiB at the peak, in arrays of 64 KiB "
        "and more",
    ]
    slowest = ", ".join(
        f"{row.name or '(model)'} {row.seconds / rows.seconds:.0%}"
        for row in profile.slowest(_SLOWEST)
    )
    if slowest:
        lines += _labelled("Slowest", slowest)
    optimized = [row for row in rows.all() if row.type == OPTIMIZED]
    for note in (_ONE_STEP, _BY_LAYERS):
        names = [
            one.name or "(model)" for one in optimized if bool(one.children) == (note is _BY_LAYERS)
        ]
        if names:
            lines += _labelled("Note", f"{', '.join(names)}: {note}")
    if not rows.children:
        lines += _labelled("Note", "nothing was measured: is the net called in the block?")
    if disturbed := disturbance(profile):
        lines += _labelled("Note", disturbed)
    return lines


def disturbance(profile: Profile) -> str:
    """Say that other programs had the cores meanwhile, if it was for long; else ''."""
    if profile.waited <= _MUCH_WAITED * profile.seconds:
        return ""
    return (
        f"threads waited {1e3 * profile.waited:.0f} ms for a core that other programs used: times "
        "are too long, and the slowest may be others"
    )


def _speed(profile: Profile) -> str:
    speed, peak = profile.rows.gflops, profile.peak_gflops
    if not speed:
        return "not known: nothing was counted"
    beside = f", {speed / peak:.0%} of a matrix product's {peak:.0f}" if peak else ""
    return f"{speed:.1f} GFLOP/s{beside}"


def _labelled(label: str, text: str) -> list[str]:
    """Return a text behind its label, on as many lines as it takes."""
    indent = " " * _LABEL
    return textwrap.wrap(
        text, _WIDEST, initial_indent=label.ljust(_LABEL), subsequent_indent=indent
    )
