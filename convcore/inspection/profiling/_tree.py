"""Events summed into a tree: modules by where they were called, operations by their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from convcore.inference.execution_plan import StepRecord
from convcore.inference.op_graph import function_name
from convcore.inspection.profiling._costs import CostlyCall
from convcore.inspection.profiling._recorder import (
    BACKWARD,
    ENTER,
    LEAVE,
    OPERATION,
    PLAN,
    Operation,
    Recorder,
)


@dataclass
class ProfileRow:
    """A module, operation or step of a plan: sums over all its calls, with what is inside.

    ``name`` is a module's path from the model; an operation's is that of the module that does it,
    its own, and its number among those of its name there, as in "layer1.0.relu:2". ``forward`` and
    ``backward`` are seconds, ``bytes`` those of new results (no views, nothing in place),
    ``multiply_adds`` and ``backward_multiply_adds`` those of the two passes by definition.
    ``algorithms`` has what a convolution's passes were computed with, ``children`` what was called
    inside. ``is_step`` says whether it is a step of a plan of `convcore.optimize_for_inference`:
    ``layers`` then has the names of all layers, functions or ONNX nodes that the step computes, and
    ``type`` those of their functions.
    """

    name: str
    type: str
    is_module: bool
    calls: int = 0
    forward: float = 0.0
    backward: float = 0.0
    bytes: int = 0
    multiply_adds: int = 0
    backward_multiply_adds: int = 0
    algorithms: dict[str, str] = field(default_factory=dict)
    children: list[ProfileRow] = field(default_factory=list)
    is_step: bool = False
    layers: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """Seconds of both passes."""
        return self.forward + self.backward

    @property
    def gflops(self) -> float:
        """Speed in 1e9 operations a second, a multiply-add being two; 0 where nothing is known."""
        operations = 2e-9 * (self.multiply_adds + self.backward_multiply_adds)
        return operations / self.seconds if self.seconds else 0.0

    @property
    def steps(self) -> list[ProfileRow]:
        """The steps of the plan of an optimized net."""
        return [child for child in self.children if child.is_step]

    def all(self) -> Iterator[ProfileRow]:
        """Yield the row and all that is inside it, each before its children."""
        yield self
        for child in self.children:
            yield from child.all()


class _Open:
    """A call that goes on: its row, when it began, and how many of each operation it did."""

    __slots__ = ("counts", "operations", "row", "start")

    def __init__(self, row: ProfileRow, start: int) -> None:
        self.row, self.start = row, start
        self.counts: Counter = Counter()
        self.operations = 0


class _Builder:
    def __init__(self, names: Sequence[str], types: Sequence[str]) -> None:
        self.names, self.types = names, types
        self.root = ProfileRow("", "total", True, calls=1)
        self.open = [_Open(self.root, 0)]
        self.places: dict[tuple[int, object], ProfileRow] = {}
        self.of: dict[int, ProfileRow] = {}  # id of an operation -> its row
        self.known: dict[object, dict[str, str]] = {}

    def child(self, key: object, name: str, type: str, is_module: bool) -> ProfileRow:
        """Return the row inside the innermost call that goes on, made at the first time."""
        parent = self.open[-1].row
        row = self.places.get((id(parent), key))
        if row is None:
            row = self.places[id(parent), key] = ProfileRow(name, type, is_module)
            parent.children.append(row)
        return row

    def enter(self, time: int, number: int) -> None:
        row = self.child(number, self.names[number], self.types[number], True)
        row.calls += 1
        self.open.append(_Open(row, time))

    def leave(self, time: int, call: CostlyCall | None) -> None:
        done = self.open.pop()
        done.row.forward += 1e-9 * (time - done.start)
        if call is not None and not done.operations:
            self.cost(done.row, call)

    def operation(self, start: int, end: int, operation: Operation) -> None:
        inside = self.open[-1]
        inside.operations += 1
        name = function_name(operation.name)
        inside.counts[name] += 1
        number = inside.counts[name]
        path = f"{inside.row.name}.{name}".lstrip(".") + (f":{number}" if number > 1 else "")
        row = self.child((name, number), path, name, False)
        row.calls += 1
        row.forward += 1e-9 * (end - start)
        row.bytes += operation.n_bytes
        if operation.call is not None:
            self.cost(row, operation.call)
        self.of[id(operation)] = row

    def plan(self, start: int, ends: Sequence[int], records: Sequence[StepRecord]) -> None:
        numbers: Counter = Counter()
        for end, record in zip(ends, records, strict=True):
            name = " + ".join(record.layers) or record.type
            numbers[record] += 1
            row = self.child((record, numbers[record]), name, record.type, False)
            row.is_step, row.layers = True, record.layers
            row.bytes += record.n_bytes
            row.calls += 1
            row.forward += 1e-9 * (end - start)
            start = end
            row.multiply_adds += record.multiply_adds
            if record.algorithm:
                row.algorithms = {"forward": record.algorithm}

    def backward(self, start: int, end: int, operation: Operation, needs: tuple) -> None:
        row = self.of.get(id(operation))
        if row is None:  # recorded by an earlier profile
            return
        row.backward += 1e-9 * (end - start)
        if operation.call is not None:
            passes = sum(needs[place] for place in operation.call.places)
            row.backward_multiply_adds += passes * operation.call.multiply_adds

    def cost(self, row: ProfileRow, call: CostlyCall) -> None:
        row.multiply_adds += call.multiply_adds
        if not row.algorithms:
            row.algorithms = call.algorithms()


def tree_of(recorder: Recorder, end: int) -> ProfileRow:
    """Return the root of the tree of what was recorded; calls that did not return end now."""
    builder = _Builder(recorder.names, recorder.types)
    handlers: dict[int, Callable[..., None]] = {
        ENTER: builder.enter,
        LEAVE: builder.leave,
        OPERATION: builder.operation,
        BACKWARD: builder.backward,
        PLAN: builder.plan,
    }
    for kind, *rest in recorder.events:
        handlers[kind](*rest)
    while len(builder.open) > 1:
        builder.leave(end, None)
    _sum(builder.root)
    builder.root.forward = sum(child.forward for child in builder.root.children)
    return builder.root


def _sum(row: ProfileRow) -> None:
    """Add to a row what its children have, but for a module's forward time, which was measured."""
    for child in row.children:
        _sum(child)
        row.backward += child.backward
        row.bytes += child.bytes
        row.multiply_adds += child.multiply_adds
        row.backward_multiply_adds += child.backward_multiply_adds
