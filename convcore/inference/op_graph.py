"""A net as a graph of ops, read from the autograd graph of one run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from convcore._tensor import Tensor
from convcore.autograd.node import AccumulateGrad, Node

# An output of a node, by its number.
Output = tuple[Node, int]
# An input of an op: a leaf tensor, an output of another op, or neither (a constant).
Operand = Tensor | Output | None


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """One autograd node, and the operands that it was computed from."""

    node: Node
    inputs: tuple[Operand, ...]

    @property
    def name(self) -> str:
        """The node's name without "Backward0": 'Relu', 'MaxPool2DWithIndices'."""
        return self.node.name().partition("Backward")[0]

    @property
    def result(self) -> Output:
        """The op's output; the first of several."""
        return self.node, 0


def reached(roots: Iterable[Node | None]) -> set[Node]:
    """Return the nodes that some nodes were computed from, and these; no leaf tensors'."""
    found: set[Node] = set()
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        if node is not None and node not in found and not isinstance(node, AccumulateGrad):
            found.add(node)
            waiting += [edge[0] for edge in node.next_functions]
    return found


class OpGraph:
    """The ops that a tensor was computed by, oldest first, and who consumes what.

    Parameters
    ----------
    result : Tensor
        Computed with gradients recorded, from leaf tensors that all require one.

    Attributes
    ----------
    all : list of Op
    result : Output
    uses : Counter of Operand
        How often each operand is consumed; the net's caller consumes the result.
    """

    def __init__(self, result: Tensor) -> None:
        found = {
            node: Op(node, tuple(_operand(edge) for edge in node.next_functions))
            for node in reached([result.grad_fn])
        }
        self.all = sorted(found.values(), key=lambda op: op.node._sequence)
        self._of = found
        self.result = result.grad_fn, result._output_nr
        self._consumers = {operand: one for one in self.all for operand in one.inputs}
        self.uses = Counter(operand for one in self.all for operand in one.inputs)
        self.uses[self.result] += 1

    def of(self, operand: Operand) -> Op | None:
        """Return the op whose output an operand is."""
        return self._of[operand[0]] if isinstance(operand, tuple) else None

    def only_consumer(self, operand: Operand) -> Op | None:
        """Return the only op that consumes an operand; None if there are several or none."""
        return self._consumers.get(operand) if self.uses[operand] == 1 else None


def _operand(edge: tuple[Node | None, int]) -> Operand:
    node, number = edge
    if isinstance(node, AccumulateGrad):
        return node.variable
    return None if node is None else (node, number)
