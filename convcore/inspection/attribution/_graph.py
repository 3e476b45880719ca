"""A run's graph: the values of its results, and a walk back with one's own rule at each node.

The rules stand in the place of the nodes' derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore.autograd.grad_mode import no_grad
from convcore.autograd.node import AccumulateGrad, Edge, Node, edge
from convcore.autograd.observation import observed
from convcore.engine.runtime.restoring import Restored
from convcore.functions.elementwise.arithmetic import add

Grads = Sequence[Tensor | None]
# (node, what arrived at its outputs, which inputs lead to the source) -> what goes to its inputs
Rule = Callable[[Node, list, tuple[bool, ...]], Grads]

# Operations whose outputs are elements of their inputs, moved or repeated, and zeros.
_MOVES_NAMES = """
    Alias AsStrided BackwardHookFunction Cat Clone ConstantPadNd CopyBackwards CopySlices
    Diagonal Expand Flip Gather Index IndexSelect NativeChannelShuffle Permute PixelShuffle
    PixelUnshuffle ReflectionPad1D ReflectionPad2D ReflectionPad3D Repeat ReplicationPad1D
    ReplicationPad2D ReplicationPad3D ReshapeAlias Roll Rot90 Select Slice Split SplitWithSizes
    Squeeze Stack T ToCopy Transpose Unbind Unfold UnsafeView Unsqueeze UpsampleNearest1D
    UpsampleNearest2D UpsampleNearest3D View
"""
MOVES = frozenset(_MOVES_NAMES.split())
MAX_POOLS = frozenset(
    f"{how}MaxPool{rank}D{indices}"
    for how in ("", "Adaptive")
    for rank in (1, 2, 3)
    for indices in ("", "WithIndices")
)
# Functions of each element by itself, besides those whose node knows their kernel.
_ELEMENTWISE_NAMES = """
    Abs Clamp ClampMax ClampMin Erf Exp Expm1 Log Log1P Pow PreluKernel Reciprocal Relu Rsqrt Sin
    Cos Sqrt
"""
ELEMENTWISE = frozenset(_ELEMENTWISE_NAMES.split())
_SOFTMAX = {"LogSoftmax", "Softmax"}


def kind(node: Node) -> str:
    """Return a node's name without "Backward0": 'Relu', 'MaxPool2DWithIndices'."""
    return node.name().rstrip("0123456789").removesuffix("Backward")


def between(root: Node, source: Node) -> list[Node]:
    """Return the nodes that lead from a node back to another one, newest first, both included."""
    found, waiting = {root}, [root]
    while waiting:
        for parent, _ in waiting.pop().next_functions:
            if parent is not None and parent not in found and type(parent) is not AccumulateGrad:
                found.add(parent)
                waiting.append(parent)
    leading = {source}
    for node in sorted(found, key=lambda node: node._sequence):
        if any(parent in leading for parent, _ in node.next_functions):
            leading.add(node)
    return sorted(leading, key=lambda node: -node._sequence)


def propagated(root: Tensor, seed: Tensor, source: Tensor, rule: Rule) -> Tensor:
    """Return what arrives at ``source`` if a rule stands in place of each derivative.

    Parameters
    ----------
    root : Tensor
        Computed from the source, with recording on.
    seed : Tensor
        What arrives at the root, of its shape.
    source : Tensor
        A result of an operation, not a leaf.
    rule : callable
        ``rule(node, grads, needs)`` returns what goes to each input of the node, which is needed
        where ``needs`` is true, from what arrived at each output, None where nothing did. What
        arrives over several paths is summed.

    Raises
    ------
    RuntimeError
        The root does not depend on the source.
    """
    start, number = edge(root)
    end, _ = edge(source)
    assert start is not None and end is not None
    order = between(start, end)
    if order[0] is not start and start is not end:
        raise RuntimeError("the model's result does not depend on its input")
    leading = set(order)
    arrived: dict[Node, list] = {start: [None] * start._outputs}
    arrived[start][number] = seed
    with no_grad():
        for node in order:
            grads = arrived.pop(node, None)
            if node is end:
                return seed.new_zeros(source.shape) if grads is None else grads[0]
            if grads is None:
                continue
            needs = tuple([parent in leading for parent, _ in node.next_functions])
            for (parent, place), grad in zip(
                node.next_functions, rule(node, grads, needs), strict=True
            ):
                if parent in leading and grad is not None:
                    buffer = arrived.setdefault(parent, [None] * parent._outputs)
                    so_far = buffer[place]
                    buffer[place] = grad if so_far is None else add(so_far, grad)
    raise AssertionError("the source is the last node of the order")


def before_softmax(output: Tensor) -> tuple[Node, int] | None:
    """Return the edge to the scores, if what a net returns is their (logarithmic) softmax."""
    node = output.grad_fn
    return node.next_functions[0] if node is not None and kind(node) in _SOFTMAX else None


# What the run made


class Tape:
    """The results of a run by the edges of its graph, as copies.

    Attributes
    ----------
    nodes : list of Node
        In the order in which they were recorded.
    """

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._values: dict[Edge, np.ndarray] = {}

    def recording(self) -> Restored:
        """Record what this thread does, as a context manager."""
        return observed(self._record)

    def _record(self, node: Node, inputs: tuple, outputs: Any) -> None:
        self.nodes.append(node)
        for number, output in enumerate(outputs if isinstance(outputs, tuple) else (outputs,)):
            self._values[node, number] = output._array.copy(order="K")

    def value(self, edge: Edge) -> np.ndarray:
        """Return what went along an edge.

        Raises
        ------
        NotImplementedError
            It is the result of an `autograd.Function`.
        """
        if edge not in self._values:
            assert edge[0] is not None
            raise unsupported(edge[0], "this method")
        return self._values[edge]

    def output(self, node: Node) -> np.ndarray:
        """Return a node's first output."""
        return self.value((node, 0))


def scored(output: Any, tape: Tape) -> Any:
    """Return a net's result; in place of a softmax or its logarithm the scores before it."""
    edge = before_softmax(output) if isinstance(output, Tensor) else None
    if edge is None or edge[0] is None:
        return output
    before = wrap(tape.value(edge).copy())
    before._grad_fn, before._output_nr = edge
    before._requires_grad = True
    return before


def unsupported(node: Node, method: str) -> NotImplementedError:
    """Return the error for an operation that a method has no rule for."""
    return NotImplementedError(f"{method} has no rule for the operation {kind(node)}")
