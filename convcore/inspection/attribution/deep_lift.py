"""DeepLift with the rescale rule, at the nodes of the graph.

The net runs on the input and on the baseline. Backwards, each elementwise function multiplies by
(difference of outputs) / (difference of inputs) in place of its derivative; linear operations by
their weights; products of two results by the mean of the other factor, so that the differences add
up there too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore import nn
from convcore._tensor import Tensor, wrap
from convcore.autograd.node import Edge, Node
from convcore.inspection.attribution._batches import MEMORY, images_at_once, parts
from convcore.inspection.attribution._graph import (
    ELEMENTWISE,
    MAX_POOLS,
    MOVES,
    Grads,
    Tape,
    kind,
    propagated,
    scored,
    unsupported,
)
from convcore.inspection.attribution._run import (
    Target,
    baseline_of,
    check_input,
    check_recorded,
    explaining,
    fixed,
    fresh,
    scores,
)

_METHOD = "deep_lift"
_LINEAR_NAMES = """
    Add AdaptiveAvgPool1D AdaptiveAvgPool2D AdaptiveAvgPool3D AvgPool1D AvgPool2D AvgPool3D Cumsum
    Mean Neg Rsub Sub Sum Tril Triu UpsampleBicubic2D UpsampleBilinear2D UpsampleLinear1D
    UpsampleTrilinear3D
"""
_LINEAR = MOVES | frozenset(_LINEAR_NAMES.split())
# Linear in each of several inputs.
_PRODUCTS = {"Addmm", "Baddbmm", "Bmm", "Convolution", "Dot", "Mm", "Mul", "Mv"}


def deep_lift(
    model: nn.Module,
    input: Tensor,
    target: Target = None,
    *,
    baseline: float | Tensor = 0.0,
    return_convergence_delta: bool = False,
    memory: int = MEMORY,
) -> Any:
    """Return DeepLift contributions, by the rescale rule, of the input against a baseline.

    Parameters
    ----------
    model, input, target
        As for `saliency`; a target of None is the class of the input itself. A softmax, or its
        logarithm, at the end of the net is left out: the scores before it are explained, as the
        paper recommends.
    baseline : number, or a tensor that broadcasts to the input
        The reference.
    return_convergence_delta : bool
        Whether the completeness figure is returned too.
    memory : int
        Bytes that the results of one batch may take.

    Returns
    -------
    Tensor of the input's shape
        With ``return_convergence_delta`` a tuple of it and, (N,), the sum of each image's
        contributions less score(input) - score(baseline): 0 up to rounding.

    Raises
    ------
    NotImplementedError
        The net has an operation without a rule: other normalisations than batch norm, a softmax
        in between, an `autograd.Function`.
    RuntimeError
        The net does other operations for the baseline; and what `saliency` raises.

    References
    ----------
    A. Shrikumar, P. Greenside, A. Kundaje, "Learning important features through propagating
    activation differences", ICML 2017, section 3.5.1. Maxima: the element that is the maximum of
    the larger run gets the whole difference. Products of two results: the mean of the other factor.

    Examples
    --------
    >>> import convcore
    >>> from convcore.inspection import attribution
    >>> attribution.deep_lift(convcore.nn.ReLU(), convcore.tensor([[2.0]]), 0, baseline=-2.0)
    tensor([[2.]])
    """
    check_input(model, input, target)
    begin = baseline_of(baseline, input)
    found = np.empty_like(input._array)
    deltas = np.empty(len(input), input._array.dtype)
    with explaining(model, input):
        size = images_at_once(model, input, memory, copies=6)  # two runs, each kept twice
        for chosen in parts(len(input), size):
            resolved = fixed(model, input, target, chosen)
            values = _contributions(model, input[chosen], begin[chosen], resolved)
            found[chosen], deltas[chosen] = values
    return (wrap(found), wrap(deltas)) if return_convergence_delta else wrap(found)


def _contributions(
    model: nn.Module, images: Tensor, begin: np.ndarray, target: Target
) -> tuple[np.ndarray, np.ndarray]:
    """Return the contributions, and their sums less the differences of the scores."""
    tapes, sources, results = (Tape(), Tape()), [], []
    for tape, array in zip(tapes, (images._array, begin), strict=True):
        laid_out = np.empty_like(images._array)  # in one memory format, or operations differ
        laid_out[...] = array
        with tape.recording():
            source = fresh(wrap(laid_out)).clone()
            score = scores(scored(model(source.clone()), tape), target)
        check_recorded(score, model)
        sources.append(source)
        results.append(score)
    rule = _Rescale(*tapes)
    factors = propagated(results[0], results[0].new_ones(len(images)), sources[0], rule)
    found = factors._array * (images._array - begin)
    differences = results[0]._array - results[1]._array
    return found, found.reshape(len(found), -1).sum(axis=1) - differences


class _Rescale:
    """The rule at each node, from the values of both runs."""

    def __init__(self, tape: Tape, other: Tape) -> None:
        names = [[node.name() for node in one.nodes] for one in (tape, other)]
        if names[0] != names[1]:
            raise RuntimeError(
                "the model does other operations for the baseline than for the input"
            )
        self.tapes = tape, other
        self.others = dict(zip(tape.nodes, other.nodes, strict=True))

    def __call__(self, node: Node, grads: list, needs: tuple[bool, ...]) -> Grads:
        name = kind(node)
        if name in MAX_POOLS:
            return self._max_pool(node, grads[0], needs)
        if name in ELEMENTWISE or "kernel" in node.attributes:
            return self._elementwise(node, grads[0], needs)
        if (
            name in _LINEAR
            or _is_affine_norm(node)
            or (name == "Div" and not needs[1:].count(True))
        ):
            return node.run(grads, needs)
        if name in _PRODUCTS:
            return self._product(node, grads, needs)
        raise unsupported(node, _METHOD)

    def _values(self, node: Node, edge: Edge, place: int) -> list[np.ndarray]:
        """Return the values along an edge in both runs."""
        other = self.others[node].next_functions[place]
        return [self.tapes[0].value(edge), self.tapes[1].value(other)]

    def _product(self, node: Node, grads: list, needs: tuple[bool, ...]) -> Grads:
        here = node.run(grads, needs)
        if needs.count(True) < 2:
            return here
        there = self.others[node].run(grads, needs)
        return [None if a is None else (a + b) / 2 for a, b in zip(here, there, strict=True)]

    def _elementwise(self, node: Node, grad: Tensor, needs: tuple[bool, ...]) -> Grads:
        if any(needs[1:]):
            raise unsupported(node, _METHOD)
        x, x0 = self._values(node, node.next_functions[0], 0)
        dx = x - x0
        dy = self.tapes[0].output(node) - self.tapes[1].output(self.others[node])
        # Where both are nearly the same, the difference has no digits but the derivative has.
        near = np.abs(dx) <= np.sqrt(np.finfo(x.dtype).eps) * (np.abs(x) + np.abs(x0))
        ratio = grad._array * np.divide(dy, dx, out=np.zeros_like(dy), where=~near)
        if near.any():
            slopes = [one.run([grad], needs)[0] for one in (node, self.others[node])]
            ratio = np.where(near, (slopes[0]._array + slopes[1]._array) / 2, ratio)
        return (wrap(ratio), *[None] * (len(needs) - 1))

    def _max_pool(self, node: Node, grad: Tensor, needs: tuple[bool, ...]) -> Grads:
        x, x0 = self._values(node, node.next_functions[0], 0)
        dx = x - x0
        dy = self.tapes[0].output(node) - self.tapes[1].output(self.others[node])
        change = grad._array * dy
        up = node.run([wrap(np.where(dy > 0, change, 0))], needs)[0]
        down = self.others[node].run([wrap(np.where(dy < 0, change, 0))], needs)[0]
        total = up._array + down._array
        return (wrap(np.divide(total, dx, out=np.zeros_like(dx), where=dx != 0)),)


def _is_affine_norm(node: Node) -> bool:
    """Return whether a node is a batch norm by running statistics, without an activation."""
    norm: Any = node.attributes.get("norm")
    return norm is not None and norm.given is not None and norm.activation is None
