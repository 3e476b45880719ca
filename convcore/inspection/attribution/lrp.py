"""Layer-wise relevance propagation (LRP) at the nodes of the graph.

The relevance of a result is shared out among what it was computed from. Every operation that is
linear shares it in proportion to what each input added (`Epsilon`); convolutions and linear layers
by the rule that is chosen for their kind. Activations pass it on, max pooling gives it to the
maximum, and each factor of a product of two results gets half. A batch norm right after a
convolution or linear layer counts as part of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from convcore import nn
from convcore._tensor import Tensor, wrap
from convcore.autograd.node import Node
from convcore.inspection.attribution._batches import MEMORY, images_at_once, parts
from convcore.inspection.attribution._graph import (
    ELEMENTWISE,
    MAX_POOLS,
    MOVES,
    Grads,
    Tape,
    between,
    kind,
    propagated,
    scored,
    unsupported,
)
from convcore.inspection.attribution._lrp_rules import (
    COMPOSITES,
    KINDS,
    Epsilon,
    Rule,
    divided,
    weighted,
)
from convcore.inspection.attribution._run import (
    Target,
    check_input,
    check_recorded,
    explaining,
    fixed,
    fresh,
    scores,
)

_WEIGHTED = {"Convolution": "convolution", "Addmm": "linear", "Mm": "linear"}
# Linear in all inputs that depend on the image, without a rule of their own.
_LINEAR_NAMES = """
    Add Addmm Addmv AdaptiveAvgPool1D AdaptiveAvgPool2D AdaptiveAvgPool3D AvgPool1D AvgPool2D
    AvgPool3D Baddbmm Bmm Convolution Cumsum Div Dot Mean Mm Mul Mv Neg Rsub Sub Sum Tril Triu
    UpsampleBicubic2D UpsampleBilinear2D UpsampleLinear1D UpsampleTrilinear3D
"""
_LINEAR = frozenset(_LINEAR_NAMES.split())
_SUMS = {"Add", "Sub", "Rsub"}


def lrp(
    model: nn.Module,
    input: Tensor,
    target: Target = None,
    *,
    rules: str | Rule | Mapping[str, Rule] = "epsilon",
    return_convergence_delta: bool = False,
    memory: int = MEMORY,
) -> Any:
    """Return relevances by layer-wise relevance propagation (LRP).

    Parameters
    ----------
    model, input, target
        As for `saliency`. A softmax, or its logarithm, at the end of the net is left out: the
        scores before it are explained.
    rules : str, rule, or dict of rules
        One rule, `Epsilon`, `Gamma` or `ZPlus`, for all convolutions and linear layers; or a
        composite: a dict from "first" (the layers that see the image), "convolution" and "linear"
        to rules, by default `Epsilon`; or the name of one: "epsilon"; "epsilon_plus", ZPlus for
        convolutions; "epsilon_gamma", Gamma for convolutions. Sums, means and other linear
        operations have the linear layers' epsilon, or 1e-6 if those have another rule.
    return_convergence_delta : bool
        Whether the conservation figure is returned too.
    memory : int
        Bytes that the results of one batch may take.

    Returns
    -------
    Tensor of the input's shape
        With ``return_convergence_delta`` a tuple of it and, (N,), the sum of each image's
        relevances less its score. It is 0 with an epsilon of 0 where nothing adds a bias; biases
        and epsilon take up relevance.

    Raises
    ------
    NotImplementedError
        The net has an operation without a rule: other normalisations than batch norm, a softmax
        in between, an `autograd.Function`.
    ValueError, TypeError
        No such composite or kind; no rule. And what `saliency` raises.

    References
    ----------
    S. Bach et al., "On pixel-wise explanations for non-linear classifier decisions by layer-wise
    relevance propagation", PLoS ONE 10, 2015. G. Montavon et al., "Layer-wise relevance
    propagation: an overview", 2019, for the rules and composites. M. Guillemot et al., "Breaking
    batch normalization for better explainability of deep neural networks through layer-wise
    relevance propagation", 2020, for folding. R. Achtibat et al., "AttnLRP", ICML 2024, for
    products.

    Examples
    --------
    >>> import convcore
    >>> from convcore.inspection import attribution
    >>> net = convcore.nn.Linear(2, 1, bias=False)
    >>> net.weight.data = convcore.tensor([[3.0, -2.0]])
    >>> attribution.lrp(net, convcore.ones(1, 2), 0, rules=attribution.Epsilon(0.0))
    tensor([[ 3., -2.]])
    """
    check_input(model, input, target)
    composite = _composite(rules)
    found = np.empty_like(input._array)
    deltas = np.empty(len(input), input._array.dtype)
    with explaining(model, input):
        size = images_at_once(model, input, memory, copies=3)  # each value is kept
        for chosen in parts(len(input), size):
            resolved = fixed(model, input, target, chosen)
            values = _relevances(model, input[chosen], resolved, composite)
            found[chosen], deltas[chosen] = values
    return (wrap(found), wrap(deltas)) if return_convergence_delta else wrap(found)


def _composite(rules: str | Rule | Mapping[str, Rule]) -> dict[str, Rule]:
    """Return the rule of each kind of layer."""
    if isinstance(rules, str):
        if rules not in COMPOSITES:
            raise ValueError(f"rules must be one of {', '.join(COMPOSITES)}, got {rules!r}")
        rules = COMPOSITES[rules]
    given = dict(rules) if isinstance(rules, Mapping) else dict.fromkeys(KINDS[1:], rules)
    for name, rule in given.items():
        if name not in KINDS:
            raise ValueError(f"rules must be for {', '.join(KINDS)}, got {name!r}")
        if not isinstance(rule, Rule):
            raise TypeError(f"rules must be Epsilon, Gamma or ZPlus, got {rule!r} for {name!r}")
    return {"convolution": Epsilon(), "linear": Epsilon(), **given}


def _relevances(
    model: nn.Module, images: Tensor, target: Target, composite: dict[str, Rule]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the relevances, and their sums less the scores."""
    tape = Tape()
    with tape.recording():
        source = fresh(images).clone()
        score = scores(scored(model(source.clone()), tape), target)
    check_recorded(score, model)
    rule = _Relevance(tape, score, source, composite)
    found = propagated(score, score.detach(), source, rule)._array
    return found, found.reshape(len(found), -1).sum(axis=1) - score._array


class _Relevance:
    """The relevance rule of each graph node, using values recorded in the forward pass."""

    def __init__(
        self, tape: Tape, score: Tensor, source: Tensor, composite: dict[str, Rule]
    ) -> None:
        assert score.grad_fn is not None and source.grad_fn is not None
        self.tape, self.composite = tape, composite
        order = between(score.grad_fn, source.grad_fn)
        leading = set(order)
        self.users: dict[Any, int] = {}
        self.first: set[Node] = set()
        below: set[Node] = set()  # nodes that stand above a weighted layer
        for node in reversed(order):
            inputs = [edge for edge in node.next_functions if edge[0] in leading]
            for edge in inputs:
                self.users[edge] = self.users.get(edge, 0) + 1
            later = any(parent in below for parent, _ in inputs)
            if self._has_weight(node, tuple(e in inputs for e in node.next_functions)):
                if not later:
                    self.first.add(node)
                later = True
            if later:
                below.add(node)
        # A layer -> the scales of the batch norm after it, and the norm's node.
        self.norms: dict[Node, tuple[np.ndarray, Node]] = {}

    def __call__(self, node: Node, grads: list, needs: tuple[bool, ...]) -> Grads:
        name = kind(node)
        if name in MOVES or name in MAX_POOLS:
            return node.run(grads, needs)
        if name in ELEMENTWISE or "kernel" in node.attributes:
            if any(needs[1:]):
                raise unsupported(node, "lrp")
            return (grads[0], *[None] * (len(needs) - 1))
        if self._has_weight(node, needs):
            return self._layer(node, grads[0], needs)
        if node.attributes.get("norm") is not None:
            return self._norm(node, grads[0], needs)
        if name not in _LINEAR or (name == "Div" and any(needs[1:])):
            raise unsupported(node, "lrp")
        return self._linear(node, grads[0], needs)

    @staticmethod
    def _has_weight(node: Node, needs: tuple[bool, ...]) -> bool:
        """Return whether a node is a convolution or linear layer of the image alone."""
        name = kind(node)
        place = 1 if name == "Addmm" else 0
        return name in _WEIGHTED and needs[place] and needs.count(True) == 1

    def _linear(self, node: Node, relevance: Tensor, needs: tuple[bool, ...]) -> Grads:
        """Share relevance out in proportion to what each input added to the result."""
        several = needs.count(True) > 1 and kind(node) not in _SUMS
        whole = divided(relevance._array, self.tape.output(node), self._epsilon())
        shares = node.run([wrap(whole / needs.count(True) if several else whole)], needs)
        return [
            None if share is None else wrap(self.tape.value(edge) * share._array)
            for edge, share in zip(node.next_functions, shares, strict=True)
        ]

    def _epsilon(self) -> float:
        """Return the epsilon of operations that have no rule of their own: the linear layers'."""
        rule = self.composite["linear"]
        return rule.epsilon if isinstance(rule, Epsilon) else 1e-6

    def _norm(self, node: Node, relevance: Tensor, needs: tuple[bool, ...]) -> Grads:
        """Pass relevance to the layer before, of which the norm is a part; or share it out."""
        norm: Any = node.attributes["norm"]
        if norm.given is None or norm.activation is not None or any(needs[1:]):
            raise unsupported(node, "lrp")
        edge = node.next_functions[0]
        before = edge[0]
        assert before is not None
        shared = self.users[edge] > 1 or not self._takes_norm(before)
        if shared:
            return self._linear(node, relevance, needs)
        ones = wrap(np.ones_like(self.tape.output(node)))
        slopes = node.run([ones], needs)[0]
        assert slopes is not None
        self.norms[before] = slopes._array[0].reshape(slopes.shape[1], -1)[:, 0], node
        return (relevance, *[None] * (len(needs) - 1))

    def _takes_norm(self, node: Node) -> bool:
        needs = tuple(edge in self.users for edge in node.next_functions)
        return self._has_weight(node, needs) and not node.attributes.get("transposed")

    def _layer(self, node: Node, relevance: Tensor, needs: tuple[bool, ...]) -> Grads:
        """Apply the rule for a convolution or linear layer."""
        place = needs.index(True)
        rule = self.composite[_WEIGHTED[kind(node)]]
        if node in self.first:
            rule = self.composite.get("first", rule)
        scales, result = self.norms.get(node, (None, node))
        x, y = self.tape.value(node.next_functions[place]), self.tape.output(result)
        if isinstance(rule, Epsilon):
            share = divided(relevance._array, y, rule.epsilon)
            if scales is not None:
                share *= scales.reshape(-1, *[1] * (share.ndim - 2))
            back = node.run([wrap(share)], needs)[place]
            assert back is not None
            found = x * back._array
        else:
            found = weighted(rule, node, x, y, relevance._array, scales)
        return [wrap(found) if number == place else None for number in range(len(needs))]
