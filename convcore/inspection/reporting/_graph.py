"""The graph of a net, one picture for each module with calls inside: boxes from top to bottom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from convcore.inspection.reporting._boxes import Box, boxes_of, edges_of
from convcore.inspection.reporting._calls import Call, inside
from convcore.inspection.reporting._text import safe, shape, shapes

_BOX, _HEIGHT, _STEP, _LANE = 352, 46, 64, 12
_DOT = " \N{MIDDLE DOT} "
_LANES = 6  # arcs beside one another; further ones share the last lane


def draw(
    calls: Sequence[Call],
    number: int,
    times: Mapping[str, float],
    bad: set[int],
    *,
    depth: int = 1,
    style: str | None = None,
) -> str:
    """Return the graph of what is inside a call as SVG; boxes are links to the layers below.

    Parameters
    ----------
    calls : sequence of Call
    number : int
    times : mapping
        Seconds by the names of calls; those that are not there are not shown.
    bad : set of int
        Calls with NaN or infinities, which are marked.
    depth : int
        How many levels of blocks are drawn.
    style : str, optional
        That of a picture in a file of its own, which has no links.
    """
    boxes = boxes_of(calls, number, depth)
    wires, lanes = _wires(edges_of(calls, boxes))
    width, height = _BOX + 4 + (_LANE * (lanes + 1) if lanes else 0), (len(boxes) + 1) * _STEP + 40
    name = calls[number].name if number else "the net"
    most = max((box.multiply_adds(calls) for box in boxes), default=0)
    own = "" if style is None else ' xmlns="http://www.w3.org/2000/svg"'
    parts = [
        f'<svg{own} viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="group" aria-label="Graph of {safe(name)}">',
        "" if style is None else f'<style>{style}</style><rect class="paper" '
        f'width="{width}" height="{height}"/>',
        *wires,
        _end(0, f"input {shapes(calls[number].given)}"),
    ]  # fmt: skip
    for row, box in enumerate(boxes, 1):
        drawn = _box(calls, number, box, row, most, times, bad)
        parts.append(drawn if style is not None else f'<a href="#c{box.first}">{drawn}</a>')
    parts.append(_end(len(boxes) + 1, f"result {shape(calls[number].output)}"))
    return "".join(parts) + "</svg>"


def _top(row: int) -> int:
    """Return where a row's box begins: rows of both ends are lower than the boxes between."""
    return 4 if row == 0 else 4 + row * _STEP - 20


def _bottom(row: int) -> int:
    return _top(row) + (26 if row == 0 else _HEIGHT)


def _end(row: int, text: str) -> str:
    middle, top = _BOX // 2 + 2, _top(row)
    return (
        f'<g class="end"><rect x="2" y="{top}" width="{_BOX}" height="26" rx="13"/>'
        f'<text x="{middle}" y="{top + 17}" text-anchor="middle">{safe(_cut(text, 50))}</text></g>'
    )


def _box(
    calls: Sequence[Call],
    around: int,
    box: Box,
    row: int,
    most: int,
    times: Mapping[str, float],
    bad: set[int],
) -> str:
    type, products = box.type(calls), box.multiply_adds(calls)
    broken = any(one in bad for number in box.calls for one in inside(calls, number))
    top, share = _top(row), products / most if most else 0
    bar = f'<rect class="bar" x="2" y="{top + _HEIGHT - 4}" width="{share * _BOX:.1f}" height="4"/>'
    title = ": ".join(filter(None, (calls[box.first].name, type))) + (
        ", has NaN or infinities" if broken else ""
    )
    return (
        f'<g class="box {box.kind(calls)}{" bad" if broken else ""}"><title>{safe(title)}</title>'
        f'<rect x="2" y="{top}" width="{_BOX}" height="{_HEIGHT}" rx="6"/>{bar if share else ""}'
        f'<text x="12" y="{top + 18}"><tspan class="name">{safe(_cut(box.name(calls, around), 28))}'
        f"</tspan> <tspan>{safe(_cut(type, 22))}</tspan></text>"
        f'<text class="facts" x="12" y="{top + 35}">'
        f"{safe(_cut(_DOT.join(box.facts(calls, times)), 58))}</text></g>"
    )


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _wires(edges: set[tuple[int, int]]) -> tuple[list[str], int]:
    """Return lines between neighbours, and arcs at the right for all others; and their lanes."""
    found, taken = [], list[list[tuple[int, int]]]()
    middle, right = _BOX // 2 + 2, _BOX + 2
    for start, end in sorted(edges, key=lambda edge: (edge[1] - edge[0], edge)):
        if end == start + 1:
            found.append(f'<path class="wire" d="M{middle} {_bottom(start)}V{_top(end)}"/>')
            continue
        lane = _lane(taken, start, end)
        x = right + 14 + _LANE * lane
        out, into = _bottom(start) - (10 if start else 13), _top(end) + 12
        found.append(
            f'<path class="wire" d="M{right} {out}H{x - 8}Q{x} {out} {x} {out + 8}'
            f'V{into - 8}Q{x} {into} {x - 8} {into}H{right}"/>'
            f'<path class="tip" d="M{right} {into}l7 -4v8z"/>'
        )
    return found, len(taken)


def _lane(taken: list[list[tuple[int, int]]], start: int, end: int) -> int:
    """Return the first lane where no arc lies between two rows, and take it."""
    for lane, arcs in enumerate(taken):
        if lane == _LANES - 1 or all(end <= one or other <= start for one, other in arcs):
            arcs.append((start, end))
            return lane
    taken.append([(start, end)])
    return len(taken) - 1
