"""One run of a net, seen: which layers ran on what, and which operations took their results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from convcore._tensor import Tensor
from convcore.autograd.grad_mode import enable_grad
from convcore.autograd.node import Node
from convcore.nn import Module

# An output of a node: what an edge of the graph leads to.
Source = tuple[Node, int]


@dataclass(frozen=True, slots=True)
class Run:
    """One call of a layer: what it took and what it returned, as outputs of nodes."""

    layer: Module
    taken: Source | None
    given: Source


class Trace:
    """The calls of a net's layers in one forward pass, and who took what they returned.

    Parameters
    ----------
    model : Module
    args : tuple
        The inputs.
    layers : tuple of classes
        The modules whose calls are looked at.

    Attributes
    ----------
    results
        What the net returned.

    Notes
    -----
    The graph of gradients is what is read, so an operation between two layers is seen whatever it
    is and wherever it was written.  Every floating parameter has to want a gradient.
    """

    def __init__(
        self, model: Module, args: tuple[Any, ...], layers: tuple[type[Module], ...]
    ) -> None:
        self._runs: list[Run] = []
        self._taken: list[Source | None] = []
        self._calls: Counter[int] = Counter()  # of layers' ids, what left no trace as well
        handles = []
        for module in model.modules():
            if isinstance(module, layers):
                handles.append(module.register_forward_pre_hook(self._before))
                handles.append(module.register_forward_hook(self._after))
        try:
            with enable_grad():
                self.results = model(*args)
        finally:
            for handle in handles:
                handle.remove()
        results = list(tensors_of(self.results))
        # Below what the layers gave, too: a layer whose result nobody takes has its input still.
        roots = [t.grad_fn for t in results if t.grad_fn is not None]
        self._uses = _uses({*roots, *(run.given[0] for run in self._runs)})
        # What the net returns is somebody's to take, too.
        self._uses.update(filter(None, map(_source, results)))
        self._by_taken = {run.taken: run for run in self._runs if run.taken is not None}

    def _before(self, module: Module, args: tuple[Any, ...]) -> None:
        # Before the call: one in place makes its input an output of another node.
        self._taken.append(_source(args[0]) if len(args) == 1 else None)

    def _after(self, module: Module, args: tuple[Any, ...], output: Any) -> None:
        taken, given = self._taken.pop(), _source(output)
        self._calls[id(module)] += 1
        if given is not None:
            self._runs.append(Run(module, taken, given))

    def once(self) -> list[Run]:
        """Return the calls of layers that were called once, in order."""
        return [run for run in self._runs if self.calls(run.layer) == 1]

    def calls(self, layer: Module) -> int:
        """Return how often a layer was called."""
        return self._calls[id(layer)]

    def follower(self, run: Run) -> Run | None:
        """Return the layer's call that took what another returned, if nobody else did."""
        return self._by_taken.get(run.given) if self._uses[run.given] == 1 else None


def _source(value: Any) -> Source | None:
    """Return the node's output that a tensor is."""
    if not isinstance(value, Tensor) or value.grad_fn is None:
        return None
    return value.grad_fn, value.output_nr


def tensors_of(value: Any) -> Iterator[Tensor]:
    """Yield the tensors of nested tuples, lists and dicts."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from tensors_of(part)
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from tensors_of(part)


def _uses(roots: set[Node]) -> Counter[Source]:
    """Count the edges that lead to each output of each node below the roots."""
    uses: Counter[Source] = Counter()
    seen, waiting = set(roots), list(roots)
    while waiting:
        for node, number in waiting.pop().next_functions:
            if node is None:
                continue
            uses[node, number] += 1
            if node not in seen:
                seen.add(node)
                waiting.append(node)
    return uses
