"""The graph of a net, one picture for each module with calls inside: boxes from top to bottom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from convcore.inspection.reporting._calls import INPUT, Call, inside
from convcore.inspection.reporting._text import bytes_of, count, safe, seconds, shape

__all__ = ["Box", "boxes_of", "draw", "kinds_of_blocks"]

_WIDTH, _BOX, _HEIGHT, _STEP, _LANE = 436, 352, 46, 64, 12
_DOT, _TIMES = " \N{MIDDLE DOT} ", "\N{MULTIPLICATION SIGN}"
_LANES = 6  # arcs beside one another; further ones share the last lane


@dataclass
class Box:
    """One box: calls that follow one another and are alike, by their numbers."""

    calls: list[int]

    @property
    def first(self) -> int:
        """The first call, that the box links to."""
        return self.calls[0]


def _alike(calls: Sequence[Call], one: Call, other: Call) -> bool:
    """Return whether two calls are of modules built alike, with calls inside."""
    if not one.children or len(one.children) != len(other.children):
        return not one.children and not other.children and _same(one, other)
    pairs = zip(one.children, other.children, strict=True)
    return _same(one, other) and all(_alike(calls, calls[a], calls[b]) for a, b in pairs)


def _same(one: Call, other: Call) -> bool:
    wanted = ("type", "output", "parameters", "multiply_adds")
    return all(getattr(one, name) == getattr(other, name) for name in wanted)


def boxes_of(calls: Sequence[Call], number: int) -> list[Box]:
    """Return what is inside a call: blocks that repeat one another, in a chain, are one box."""
    found: list[Box] = []
    for child in calls[number].children:
        last = found[-1] if found else None
        if (
            last is not None
            and calls[child].children
            and _alike(calls, calls[last.first], calls[child])
            and _follows(calls, last.calls[-1], child)
        ):
            last.calls.append(child)
        else:
            found.append(Box([child]))
    return found


def kinds_of_blocks(calls: Sequence[Call]) -> list[int]:
    """Return the first call of each kind of block: one with calls inside of the same types."""
    found: dict[tuple, int] = {}
    for call in calls[1:]:
        if call.children:
            types = tuple(calls[child].type for child in call.children)
            found.setdefault((call.type, *types), call.number)
    return list(found.values())


def _follows(calls: Sequence[Call], before: int, after: int) -> bool:
    within = set(inside(list(calls), before))
    return bool(calls[after].inputs) and within.issuperset(calls[after].inputs)


def _edges(calls: Sequence[Call], boxes: list[Box]) -> set[tuple[int, int]]:
    """Return (from, to) among boxes, numbered from 1; 0 is what comes from outside."""
    place: dict[int, int] = {}
    for index, box in enumerate(boxes, 1):
        for call in box.calls:
            place.update(dict.fromkeys(inside(list(calls), call), index))
    found = set()
    for index, box in enumerate(boxes, 1):
        for call in box.calls:
            for number in inside(list(calls), call):
                for source in calls[number].inputs:
                    start = 0 if source == INPUT else place.get(source, 0)
                    if start != index:
                        found.add((start, index))
    return found


def _results(calls: Sequence[Call], boxes: list[Box], number: int) -> set[int]:
    """Return the boxes that nothing else inside takes results of: the call's own results."""
    used = {start for start, _ in _edges(calls, boxes)}
    return set(range(1, len(boxes) + 1)) - used or {len(boxes)}


def draw(
    calls: Sequence[Call], number: int, times: dict[str, float], bad: set[int], given: str
) -> str:
    """Return the graph of what is inside a call as SVG; boxes are links to the layers below.

    Parameters
    ----------
    calls : sequence of Call
    number : int
    times : dict
        Seconds by the names of calls; those that are not there are not shown.
    bad : set of int
        Calls with NaN or infinities, which are marked.
    given : str
        The shape of what the call takes.
    """
    boxes = boxes_of(calls, number)
    edges = _edges(calls, boxes)
    edges |= {(last, len(boxes) + 1) for last in _results(calls, boxes, number)}
    height = (len(boxes) + 1) * _STEP + 40
    name = calls[number].name if number else "the net"
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" role="group" '
        f'aria-label="Graph of {safe(name)}">',
        *_wires(edges, boxes),
        _end(0, f"input {given}"),
    ]
    most = max((calls[box.first].multiply_adds * len(box.calls) for box in boxes), default=0)
    for row, box in enumerate(boxes, 1):
        parts.append(_box(calls, box, row, most, times, bad))
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
    calls: Sequence[Call], box: Box, row: int, most: int, times: dict[str, float], bad: set[int]
) -> str:
    call, many = calls[box.first], len(box.calls)
    name = _local(calls, call)
    if many > 1:
        name = f"{name} \N{HORIZONTAL ELLIPSIS} {_local(calls, calls[box.calls[-1]])}"
    type = f"{many} \N{MULTIPLICATION SIGN} {call.type}" if many > 1 else call.type
    n_bytes = sum(calls[one].bytes for one in box.calls)
    facts = [shape(call.output), *([bytes_of(n_bytes)] if n_bytes else [])]
    if call.multiply_adds:
        facts.append(f"{count(many * call.multiply_adds)} MACs")
    taken = [times[calls[one].name] for one in box.calls if calls[one].name in times]
    if taken:
        facts.append(seconds(sum(taken)))
    kind = _kind(call)
    broken = any(one in bad for number in box.calls for one in inside(list(calls), number))
    top, share = _top(row), many * call.multiply_adds / most if most else 0
    bar = f'<rect class="bar" x="2" y="{top + _HEIGHT - 4}" width="{share * _BOX:.1f}" height="4"/>'
    title = f"{calls[box.first].name}: {type}" + (", has NaN or infinities" if broken else "")
    mark = " bad" if broken else ""
    return (
        f'<a href="#c{box.first}"><g class="box {kind}{mark}"><title>{safe(title)}</title>'
        f'<rect x="2" y="{top}" width="{_BOX}" height="{_HEIGHT}" rx="6"/>{bar if share else ""}'
        f'<text x="12" y="{top + 18}"><tspan class="name">{safe(_cut(name, 28))}</tspan> '
        f"<tspan>{safe(_cut(type, 22))}</tspan></text>"
        f'<text class="facts" x="12" y="{top + 35}">'
        f"{safe(_cut(_DOT.join(facts), 58))}</text></g></a>"
    )


def _kind(call: Call) -> str:
    if call.children:
        return "block"
    return "costly" if call.multiply_adds else "plain"


def _local(calls: Sequence[Call], call: Call) -> str:
    """Return a name without that of the call around it."""
    around = "" if call.parent in (None, 0) else calls[call.parent or 0].name.partition(":")[0]
    return call.name.removeprefix(f"{around}.") if around else call.name


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _wires(edges: set[tuple[int, int]], boxes: list[Box]) -> list[str]:
    """Return lines between neighbours, and arcs at the right for all others."""
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
    return found


def _lane(taken: list[list[tuple[int, int]]], start: int, end: int) -> int:
    """Return the first lane where no arc lies between two rows, and take it."""
    for lane, arcs in enumerate(taken):
        if lane == _LANES - 1 or all(end <= one or other <= start for one, other in arcs):
            arcs.append((start, end))
            return lane
    taken.append([(start, end)])
    return len(taken) - 1
