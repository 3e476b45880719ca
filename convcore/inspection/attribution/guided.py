"""Guided backpropagation and deconvolution: gradients with another rule at each ReLU.

The rule is applied where a ReLU stands in the graph, so modules that are called again, functions,
and operations in place all follow it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from convcore import nn
from convcore._tensor import Tensor
from convcore.autograd.node import Node
from convcore.inspection.attribution._batches import MEMORY, by_chunks
from convcore.inspection.attribution._graph import Grads, kind, propagated, unsupported
from convcore.inspection.attribution._run import (
    Target,
    check_input,
    check_recorded,
    explaining,
    fresh,
    scores,
)

# As the graph names them; Hardtanh is ReLU6.
_RELUS = {"Relu", "Hardtanh"}

_AtRelu = Callable[[Node, Tensor, tuple[bool, ...]], Grads]


def guided_backprop(
    model: nn.Module, input: Tensor, target: Target = None, *, memory: int = MEMORY
) -> Tensor:
    """Return the gradient by guided backpropagation: only positive gradients pass a ReLU.

    Parameters and errors are those of `saliency`; the result has the input's shape. Every ReLU and
    ReLU6 follows the rule, whether a module (also one that is called several times), a function or
    in place; other activations have their derivative. `batch_norm_activation` and
    `conv_activation`, called directly, raise NotImplementedError, for they hide a ReLU.

    References
    ----------
    J. T. Springenberg, A. Dosovitskiy, T. Brox, M. Riedmiller, "Striving for simplicity: the all
    convolutional net", ICLR workshop 2015.
    """

    def guided(node: Node, grad: Tensor, needs: tuple[bool, ...]) -> Grads:
        return node.run([grad.clamp(min=0)], needs)

    return _with_rule(guided, model, input, target, memory)


def deconvolution(
    model: nn.Module, input: Tensor, target: Target = None, *, memory: int = MEMORY
) -> Tensor:
    """Return the gradient by a deconvolutional net: a ReLU is applied to gradients instead.

    Parameters and errors are those of `saliency`; the result has the input's shape. What passes is
    where the gradient is positive, whatever the ReLU did in the forward pass.

    References
    ----------
    M. D. Zeiler, R. Fergus, "Visualizing and understanding convolutional networks", ECCV 2014.
    """

    def deconvolved(node: Node, grad: Tensor, needs: tuple[bool, ...]) -> Grads:
        return (grad.clamp(min=0),)

    return _with_rule(deconvolved, model, input, target, memory)


def _with_rule(
    at_relu: _AtRelu, model: nn.Module, input: Tensor, target: Target, memory: int
) -> Tensor:
    def rule(node: Node, grads: list, needs: tuple[bool, ...]) -> Grads:
        if kind(node) in _RELUS and grads[0] is not None:
            return at_relu(node, grads[0], needs)
        if _hides_relu(node):
            raise unsupported(node, "guided_backprop or deconvolution")
        return node.run(grads, needs)

    def explain(images: Tensor, chosen: slice) -> Tensor:
        source = fresh(images).clone()
        score = scores(model(source.clone()), target, chosen)
        check_recorded(score, model)
        return propagated(score, score.new_ones(score.shape), source, rule)

    check_input(model, input, target)
    with explaining(model, input):
        return by_chunks(explain, model, input, memory)


def _hides_relu(node: Node) -> bool:
    """Return whether a node is a convolution or norm with the activation after it."""
    norm: Any = node.attributes.get("norm")
    return kind(node) == "ConvolutionActivation" or (norm is not None and bool(norm.activation))
