"""Trace of one run of a net: which layer's output went to which layer or op."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from convcore._tensor import Tensor
from convcore.autograd.grad_mode import enable_grad, mode
from convcore.autograd.saved import saved_tensors_hooks
from convcore.engine.runtime._restoring import Restoring, within
from convcore.engine.runtime.restoring import together
from convcore.inference.op_graph import Output, reached
from convcore.nn import Module
from convcore.nn.modules._hooks import call_hooks
from convcore.nn.modules.utils import nested_tensors


@dataclass(frozen=True, slots=True)
class Run:
    """One call of a layer: its input and its output, as outputs of autograd nodes."""

    layer: Module
    input: Output | None
    output: Output


class DifferentiatedError(Exception):
    """A net computes gradients in its forward pass, of what `recording` does not keep."""


def recording() -> Restoring:
    """Record operations but not the tensors that a backward pass would need.

    They are often many times what an inference holds at once.

    Raises
    ------
    DifferentiatedError
        A backward pass needs one of them.
    """
    if mode.hooks_forbidden is not None:
        return enable_grad()
    return together(enable_grad(), saved_tensors_hooks(_forget, _restore))


def _forget(tensor: Tensor) -> None:
    pass


def _restore(packed: None) -> Tensor:
    raise DifferentiatedError


class Trace:
    """The calls of a net's layers in one forward pass, and the consumers of their outputs.

    Parameters
    ----------
    model : Module
    args : tuple
        The inputs.
    layers : tuple of classes
        The modules whose calls are traced.
    keep : bool
        Whether tensors that a backward pass needs are kept: for nets that compute gradients.

    Attributes
    ----------
    results
        The net's output.

    Notes
    -----
    It is read from the autograd graph, so any op between two layers is seen, wherever the net's
    code calls it.  Every floating-point parameter has to require a gradient.
    """

    def __init__(
        self,
        model: Module,
        args: tuple[Any, ...],
        layers: tuple[type[Module], ...],
        keep: bool = False,
    ) -> None:
        self._runs: list[Run] = []
        self._inputs: list[Output | None] = []
        # By the layer's id; calls that left no trace in the graph count too.
        self._calls: Counter[Module] = Counter()
        traced = [module for module in model.modules() if isinstance(module, layers)]
        hooks = call_hooks(traced, self._before, self._after)
        self.results = within(together(hooks, enable_grad() if keep else recording()), model, args)
        results = list(nested_tensors(self.results))
        # From the layers' outputs, too: a layer whose output is unused still consumes its input.
        nodes = reached([*(t.grad_fn for t in results), *(run.output[0] for run in self._runs)])
        self._uses = Counter(edge for node in nodes for edge in node.next_functions)
        # The net's caller consumes its results.
        self._uses.update(filter(None, map(_source, results)))
        self._by_input = {run.input: run for run in self._runs if run.input is not None}

    def _before(self, module: Module, args: tuple[Any, ...]) -> None:
        # Before the call: an in-place layer makes its input the output of another node.
        self._inputs.append(_source(args[0]) if len(args) == 1 else None)

    def _after(self, module: Module, args: tuple[Any, ...], output: Any) -> None:
        source, result = self._inputs.pop(), _source(output)
        self._calls[module] += 1
        if result is not None:
            self._runs.append(Run(module, source, result))

    def once(self) -> list[Run]:
        """Return the calls of the layers that were called exactly once, in order."""
        return [run for run in self._runs if self.calls(run.layer) == 1]

    def calls(self, layer: Module) -> int:
        """Return how often a layer was called."""
        return self._calls[layer]

    def follower(self, run: Run) -> Run | None:
        """Return the call that consumed the output of another, if it is the only consumer."""
        return self._by_input.get(run.output) if self._uses[run.output] == 1 else None


def _source(value: Any) -> Output | None:
    """Return the node and output number that a tensor comes from."""
    if not isinstance(value, Tensor) or value.grad_fn is None:
        return None
    return value.grad_fn, value.output_nr
