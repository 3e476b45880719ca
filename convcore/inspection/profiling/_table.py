"""The printed form of a profile: a tree of modules and operations, at most 100 columns wide.

The steps of plans follow it, each with the names of all that it computes.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from convcore.inspection._optimized import OPTIMIZED
from convcore.inspection.profiling._onnxruntime import Match, OtherNode, matched

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
    "a net of optimize_for_inference is one step here, and what it does is not counted: its first "
    "call fused its layers and made no plan. Profile a later call"
)
_BY_LAYERS = "the layers of a net of optimize_for_inference were called one by one: it has no plan"
_STEP_HEAD = ("calls", "ms", "share", "MiB", "M-adds", "GFLOP/s")
_STEP_WIDTHS = (5, 9, 6, 8, 9, 8)
_BESIDE = 10  # of the column of ONNX Runtime's times
_FUNCTION = 13
_ABOVE, _NO_NODE = '"', "-"
_SIGNS = {
    _ABOVE: f"{_ABOVE} in ONNX Runtime's time above: the same node computes both steps",
    _NO_NODE: f"{_NO_NODE} no match: ONNX Runtime's profile has no node of these names, which may "
    "be fused into another",
}
_MUCH_WAITED = 0.05  # of the time


def text(
    profile: Profile, depth: int | None = None, beside: Sequence[OtherNode] | None = None
) -> str:
    """Return a profile as text; ``depth`` is the depth of the printed tree.

    beside : the nodes of a profile by ONNX Runtime
    """
    total = profile.rows.seconds
    cells = [
        (name, _cells(row, total), _algorithm(row)) for name, row in _shown(profile.rows, 0, depth)
    ]
    head = "times in ms".ljust(_NAME) + "".join(
        h.rjust(w) for h, w in zip(_HEAD, _WIDTHS, strict=True)
    )
    rule = "-" * (_NAME + sum(_WIDTHS) + _ALGORITHM)
    lines = [_line(name, numbers, algorithm) for name, numbers, algorithm in cells]
    lines = [f"{head}  algorithm", rule, *lines, rule]
    for row in profile.rows.all():
        if depth is None and row.steps:
            lines += [*_plan(profile, row, beside), rule]
    return "\n".join([*lines, *_totals(profile)])


def _plan(profile: Profile, row: ProfileRow, beside: Sequence[OtherNode] | None) -> Iterator[str]:
    """Yield the lines of a plan's steps; all numbers are of one call where ONNX Runtime's are."""
    calls = row.calls if beside is not None else 1
    matches = matched(row.steps, beside or (), profile._by_output)
    total = sum(step.seconds for step in row.steps)
    head = "".join(h.rjust(w) for h, w in zip(_STEP_HEAD, _STEP_WIDTHS, strict=True))
    if beside is not None:
        head += "ORT ms".rjust(_BESIDE)
    name = f"step of the plan of {row.name or '(model)'}"
    yield f"{head}  {'algorithm':<{_FUNCTION}} {name}"
    shown = set()  # of the signs
    for match in matches:
        other = _other(match)
        for step in match.steps:
            time = f"{1e3 * step.seconds / calls:.3f}"
            numbers = (f"{step.calls}", time, *_cells(step, total, calls)[3:])
            line = "".join(c.rjust(w) for c, w in zip(numbers, _STEP_WIDTHS, strict=True))
            if beside is not None:
                line += other.rjust(_BESIDE)
                shown.add(other)
                other = _ABOVE if match.others else _NO_NODE
            line += f"  {(_algorithm(step) or step.type)[:_FUNCTION]:<{_FUNCTION}} "
            indent = " " * len(line)
            yield from textwrap.wrap(
                step.name, _WIDEST, initial_indent=line, subsequent_indent=indent
            )
    if beside is None:
        return
    pad = " " * sum(_STEP_WIDTHS)
    for match in matches:
        if not match.steps:
            line = f"{pad}{_other(match):>{_BESIDE}}  {'-':<{_FUNCTION}} "
            yield f"{line}{len(match.others)} {match.others[0].type}: no match"[:_WIDEST]
    pad = " " * sum(_STEP_WIDTHS[2:])
    others = 1e3 * sum(one.seconds for one in beside)
    yield f"{1e3 * total / calls:14.3f}{pad}{others:{_BESIDE}.3f}  in all; numbers of one call"
    for sign, text in _SIGNS.items():
        if sign in shown:
            yield from textwrap.wrap(text, _WIDEST)


def _other(match: Match) -> str:
    """Return the milliseconds of ONNX Runtime's nodes."""
    if not match.others:
        return _NO_NODE
    return f"{1e3 * sum(one.seconds for one in match.others):.3f}"


def _shown(row: ProfileRow, level: int, depth: int | None) -> Iterator[tuple[str, ProfileRow]]:
    """Yield the printed name of each row and the row."""
    if depth is not None and level > depth:
        return
    for child in row.children:
        if child.is_step:
            continue
        name = child.name.rpartition(".")[2] or "(model)"
        yield "  " * level + (name if child.is_module else f"- {name}"), child
        # A layer that is one operation takes one line.
        if len(child.children) > 1 or any(c.is_module for c in child.children):
            yield from _shown(child, level + 1, depth)


def _cells(row: ProfileRow, total: float, calls: int = 1) -> tuple[str, ...]:
    share = f"{row.seconds / total:.0%}" if total else "-"
    costly = row.multiply_adds / calls
    return (
        f"{row.calls}",
        f"{1e3 * row.forward:.2f}",
        f"{1e3 * row.backward:.2f}" if row.backward else "-",
        share,
        f"{row.bytes / calls / 2**20:.2f}" if row.bytes else "-",
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
            one.name or "(model)"
            for one in optimized
            if not one.steps and bool(one.children) == (note is _BY_LAYERS)
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
