"""The boxes that a graph of calls has, and what flows between them: one repeated block, one box."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from convcore.inspection.reporting._calls import INPUT, Call, inside
from convcore.inspection.reporting._text import bytes_of, count, seconds, shape


@dataclass
class Box:
    """One box: calls that follow one another and are alike, by their numbers."""

    calls: list[int]

    @property
    def first(self) -> int:
        """The first call, that the box links to."""
        return self.calls[0]

    def name(self, calls: Sequence[Call], around: int) -> str:
        """Return the name, without that of the call that the graph is of."""
        path = calls[around].name.partition(":")[0] if around else ""
        first, last = (
            calls[one].name.removeprefix(f"{path}." if path else "")
            for one in (self.first, self.calls[-1])
        )
        return first if first == last else f"{first} \N{HORIZONTAL ELLIPSIS} {last}"

    def type(self, calls: Sequence[Call]) -> str:
        """Return the type, and how many of it; empty of functions, whose names say it."""
        type, many = calls[self.first].type, len(self.calls)
        if calls[self.first].module is None:
            return ""
        return f"{many} \N{MULTIPLICATION SIGN} {type}" if many > 1 else type

    def multiply_adds(self, calls: Sequence[Call]) -> int:
        """Return the multiply-adds of all its calls."""
        return sum(calls[one].multiply_adds for one in self.calls)

    def facts(self, calls: Sequence[Call], times: Mapping[str, float]) -> list[str]:
        """Return shape, memory, multiply-adds, and time if it is among the times."""
        found = [shape(calls[self.first].output)]
        if n_bytes := sum(calls[one].bytes for one in self.calls):
            found.append(bytes_of(n_bytes))
        if products := self.multiply_adds(calls):
            found.append(f"{count(products)} MACs")
        taken = [times[calls[one].name] for one in self.calls if calls[one].name in times]
        return [*found, seconds(sum(taken))] if taken else found

    def kind(self, calls: Sequence[Call]) -> str:
        """Return 'block', 'costly' or 'plain'."""
        call = calls[self.first]
        if call.children:
            return "block"
        return "costly" if call.multiply_adds else "plain"


def _alike(calls: Sequence[Call], one: Call, other: Call) -> bool:
    """Return whether two calls are of modules built alike, with calls inside."""
    if not one.children or len(one.children) != len(other.children):
        return not one.children and not other.children and _same(one, other)
    pairs = zip(one.children, other.children, strict=True)
    return _same(one, other) and all(_alike(calls, calls[a], calls[b]) for a, b in pairs)


def _same(one: Call, other: Call) -> bool:
    wanted = ("type", "output", "parameters", "multiply_adds")
    return all(getattr(one, name) == getattr(other, name) for name in wanted)


def boxes_of(calls: Sequence[Call], number: int, depth: int = 1) -> list[Box]:
    """Return what is inside a call: blocks that repeat one another, in a chain, are one box.

    A box comes after those whose results it takes, and right after one of them where it can: what
    a net calls in between, such as a block's shortcut, does not cut a chain.  From a depth of 2 on,
    other blocks are replaced by the boxes inside them.
    """
    found = _children_of(calls, number)
    if depth == 1:
        return found
    opened = (
        boxes_of(calls, box.first, depth - 1)
        if len(box.calls) == 1 and calls[box.first].children
        else [box]
        for box in found
    )
    return [box for boxes in opened for box in boxes]


def _children_of(calls: Sequence[Call], number: int) -> list[Box]:
    found: list[Box] = []
    for child in _by_flow(calls, calls[number].children):
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


def _by_flow(calls: Sequence[Call], children: Sequence[int]) -> list[int]:
    """Return calls in the order of what flows between them; of several, the one called first."""
    place = {one: child for child in children for one in inside(calls, child)}
    needs = {child: set[int]() for child in children}
    for one, child in place.items():
        needs[child].update(place[source] for source in calls[one].inputs if source in place)
        needs[child].discard(child)
    users: dict[int, list[int]] = {child: [] for child in children}
    for child, sources in needs.items():
        for source in sources:
            users[source].append(child)
    ready, found = [child for child in children if not needs[child]], list[int]()
    while ready:
        chosen = min(ready, key=lambda one: (not found or one not in users[found[-1]], one))
        ready.remove(chosen)
        found.append(chosen)
        for user in users[chosen]:
            needs[user].discard(chosen)
            if not needs[user]:
                ready.append(user)
    return found


def kinds_of_blocks(calls: Sequence[Call]) -> list[int]:
    """Return the first call of each kind of block: one with calls inside of the same types.

    Those whose graph would be a single box are left out.
    """
    found: dict[tuple, int] = {}
    for call in calls[1:]:
        if len(boxes_of(calls, call.number)) > 1:
            types = tuple(calls[child].type for child in call.children)
            found.setdefault((call.type, *types), call.number)
    return list(found.values())


def _follows(calls: Sequence[Call], before: int, after: int) -> bool:
    within = set(inside(calls, before))
    return bool(calls[after].inputs) and within.issuperset(calls[after].inputs)


def edges_of(calls: Sequence[Call], boxes: list[Box]) -> set[tuple[int, int]]:
    """Return (from, to) among boxes, numbered from 1; 0 is what comes from outside.

    Boxes that nothing else takes results of make the result, which has the last number.
    """
    place: dict[int, int] = {}
    for index, box in enumerate(boxes, 1):
        for call in box.calls:
            place.update(dict.fromkeys(inside(calls, call), index))
    found = set()
    for index, box in enumerate(boxes, 1):
        for call in box.calls:
            for number in inside(calls, call):
                for source in calls[number].inputs:
                    start = 0 if source == INPUT else place.get(source, 0)
                    if start != index:
                        found.add((start, index))
    used = {start for start, _ in found}
    last = len(boxes)
    return found | {(one, last + 1) for one in set(range(1, last + 1)) - used or {last}}
