"""The values of all intermediate results of a run, also of those changed in place later."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore.autograd.node import Edge, Node
from convcore.autograd.observation import observed
from convcore.inspection.attribution._graph import before_softmax, kind

__all__ = ["Tape", "scored", "unsupported"]


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

    @contextmanager
    def recording(self) -> Iterator[Tape]:
        """Record what this thread does, as a context manager."""
        with observed(self._record):
            yield self

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
