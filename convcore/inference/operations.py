"""A net as a list of operations, read from the graph of gradients of one run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from convcore._tensor import Tensor
from convcore.autograd.node import AccumulateGrad, Node

# An output of a node, by its number.
Output = tuple[Node, int]
# What an operation takes: a leaf, an output of another operation, or neither (a constant).
Operand = Tensor | Output | None


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One node, and what it took."""

    node: Node
    taken: tuple[Operand, ...]

    @property
    def name(self) -> str:
        """The node's name without what it says of its backward: 'Relu', 'MaxPool2DWithIndices'."""
        return self.node.name().partition("Backward")[0]

    @property
    def result(self) -> Output:
        """What the operation made; the first of several."""
        return self.node, 0


class Operations:
    """The operations that made a tensor, oldest first, and who takes what.

    Parameters
    ----------
    result : Tensor
        Made with gradients recorded, of leaves that all require one.

    Attributes
    ----------
    all : list of Operation
    result : Output
    uses : Counter of Operand
        How often each operand is taken; whoever gets the result takes it, too.
    """

    def __init__(self, result: Tensor) -> None:
        found: dict[Node, Operation] = {}
        waiting = [result.grad_fn]
        while waiting:
            node = waiting.pop()
            if node is None or node in found or isinstance(node, AccumulateGrad):
                continue
            found[node] = Operation(node, tuple(_operand(edge) for edge in node.next_functions))
            waiting += [edge[0] for edge in node.next_functions]
        self.all = sorted(found.values(), key=lambda operation: operation.node._sequence)
        self._of = found
        self.result = result.grad_fn, result._output_nr
        self._takers = {taken: one for one in self.all for taken in one.taken}
        self.uses = Counter(taken for one in self.all for taken in one.taken)
        self.uses[self.result] += 1

    def of(self, operand: Operand) -> Operation | None:
        """Return the operation whose output an operand is."""
        return self._of[operand[0]] if isinstance(operand, tuple) else None

    def only_taker(self, operand: Operand) -> Operation | None:
        """Return the one operation that takes an operand; None where others do, too."""
        return self._takers.get(operand) if self.uses[operand] == 1 else None


def _operand(edge: tuple[Node | None, int]) -> Operand:
    node, number = edge
    if isinstance(node, AccumulateGrad):
        return node.variable
    return None if node is None else (node, number)
