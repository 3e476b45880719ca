"""Small charts as SVG: histograms, gradients by layer, and a flame graph."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from convcore.inspection.profiling import ProfileRow
from convcore.inspection.reporting._text import number, safe, seconds

_WIDTH, _HEIGHT = 256, 60
_FLAME, _LEVEL, _THIN = 1000, 20, 8


def histogram(found: tuple[list[int], list[float]], what: str) -> str:
    """Return counts as bars under a square root, so that rare values are seen beside many zeros."""
    counts, edges = found
    most = max(counts, default=0)
    if not most or not all(map(math.isfinite, edges)):
        return ""
    step = _WIDTH / len(counts)
    heights = [round(_HEIGHT * math.sqrt(n / most)) for n in counts]
    outline = "".join(
        f"v{last - high}h{step:g}" if last != high else f"h{step:g}"
        for last, high in pairwise([0, *heights])
    )
    ends = (
        f'<text x="0" y="{_HEIGHT + 14}">{safe(number(edges[0]))}</text>'
        f'<text x="{_WIDTH}" y="{_HEIGHT + 14}" text-anchor="end">{safe(number(edges[-1]))}</text>'
    )
    title = f"Histogram of {what}; a bar's height is the square root of its count"
    return (
        f'<figure><svg viewBox="0 0 {_WIDTH} {_HEIGHT + 18}" width="{_WIDTH}" '
        f'height="{_HEIGHT + 18}" role="img" aria-label="{safe(title)}">'
        f'<path class="hist" d="M0 {_HEIGHT}{outline}V{_HEIGHT}z"/>{ends}</svg>'
        f"<figcaption>{safe(title)}</figcaption></figure>"
    )


def flow(entries: Sequence[tuple[int, str, float]]) -> str:
    """Return bars of gradients by layer, on a logarithmic scale: (call, name, size) of each."""
    finite = [(call, name, size) for call, name, size in entries if 0 < size < math.inf]
    if not finite:
        return ""
    least = math.floor(math.log10(min(size for *_, size in finite))) - 1
    most = math.ceil(math.log10(max(size for *_, size in finite))) or 0
    most = max(most, least + 1)
    height, width = 150, 1000
    step = width / len(entries)
    are_named = all(7 * len(name.removesuffix(".weight")) < step for _, name, _ in entries)
    parts = []
    for power in range(least, most + 1, max(1, -(-(most - least) // 5))):
        y = height * (most - power) / (most - least) + 8
        parts.append(
            f'<path class="axis" d="M44 {y:.1f}H{width + 44}"/>'
            f'<text x="40" y="{y + 4:.1f}" text-anchor="end">1e{power}</text>'
        )
    for k, (call, name, size) in enumerate(entries):
        ok = 0 < size < math.inf
        high = height * (math.log10(size) - least) / (most - least) if ok else height
        title = safe(f"{name}: {number(size)}")
        parts.append(
            f'<a href="#c{call}"><g class="box {"costly" if ok else "bad"}"><title>{title}</title>'
            f'<rect class="{"hist" if ok and size else ""}" x="{44 + k * step + 1:.1f}" '
            f'y="{height - high + 8:.1f}" '
            f'width="{max(step - 2, 1):.1f}" height="{high:.1f}"/></g></a>'
        )
        layer = name.removesuffix(".weight")
        if are_named:
            middle = 44 + (k + 0.5) * step
            place = f'x="{middle:.1f}" y="{height + 22}" text-anchor="middle"'
            parts.append(f"<text {place}>{safe(layer)}</text>")
    return (
        f'<div class="wide"><svg viewBox="0 0 {width + 50} {height + 28}" width="{width + 50}" '
        f'height="{height + 28}" role="group" aria-label="Gradients of the weights">'
        f"{''.join(parts)}</svg></div>"
    )


def flame(root: ProfileRow) -> str:
    """Return a flame graph of a profile: each row's width is its time, those inside it below."""
    found = list(_bars([root], 0, 0.0, root.seconds or 1.0))
    height = (max(level for level, *_ in found) + 1) * _LEVEL
    parts = []
    for level, left, width, rows in found:
        title, name = _named(rows, root)
        label = f'<text x="{left + 3:.1f}" y="{level * _LEVEL + 14}">{safe(name)}</text>'
        parts.append(
            f'<g class="{"b" if rows[0].children else ""}"><title>{safe(title)}</title>'
            f'<rect x="{left:.1f}" y="{level * _LEVEL}" width="{width:.1f}" '
            f'height="{_LEVEL - 1}"/>{label if width > 7 * len(name) + 6 else ""}</g>'
        )
    return (
        f'<div class="wide"><svg class="flame" viewBox="0 0 {_FLAME} {height}" width="{_FLAME}" '
        f'height="{height}" role="img" aria-label="Flame graph">{"".join(parts)}</svg></div>'
    )


def _named(rows: Sequence[ProfileRow], root: ProfileRow) -> tuple[str, str]:
    """Return the title of a bar and its short name."""
    forward, backward = sum(row.forward for row in rows), sum(row.backward for row in rows)
    spent = f"{seconds(forward)} forward, {seconds(backward)} backward"
    if len(rows) > 1:
        return f"{', '.join(row.name for row in rows)}: together {spent}", f"{len(rows)} short ones"
    path = rows[0].name or ("both passes" if rows[0] is root else "(the net)")
    return f"{path}: {spent}", path.rpartition(".")[2]


def _bars(
    rows: list[ProfileRow], level: int, left: float, whole: float
) -> Iterator[tuple[int, float, float, list[ProfileRow]]]:
    """Yield (level, left, width, rows) of a bar and what is inside it."""
    yield level, left, _FLAME * sum(row.seconds for row in rows) / whole, rows
    if len(rows) > 1:
        return
    for group in _together(rows[0].children, whole):
        yield from _bars(group, level + 1, left, whole)
        left += _FLAME * sum(row.seconds for row in group) / whole


def _together(rows: Sequence[ProfileRow], whole: float) -> Iterator[list[ProfileRow]]:
    """Yield rows alone, but neighbours too thin to be pointed at as one."""
    for thin, group in groupby(rows, lambda row: _FLAME * row.seconds / whole < _THIN):
        if thin:
            yield list(group)
        else:
            yield from ([row] for row in group)
