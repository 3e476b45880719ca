"""The rules of LRP for convolutions and linear layers: epsilon, gamma, z+; and composites."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore.autograd.differentiate import grad
from convcore.autograd.grad_mode import enable_grad
from convcore.autograd.node import Node
from convcore.autograd.saved import unpack
from convcore.functions.products.matmul import mm
from convcore.functions.windows import conv
from convcore.inspection.attribution._graph import kind


def _check_not_negative(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise ValueError(f"{name} must be a number that is not negative, got {value!r}")


class Rule:
    """A rule of LRP for the layers of one kind: the base of `Epsilon`, `Gamma` and `ZPlus`."""


@dataclass(frozen=True)
class Epsilon(Rule):
    """The epsilon rule of LRP: relevance in proportion to x * w, over z + epsilon * sign(z).

    Raises ValueError for a negative epsilon.

    References
    ----------
    S. Bach et al., PLoS ONE 10, 2015, equation 58.
    """

    epsilon: float = 1e-6

    def __post_init__(self) -> None:
        _check_not_negative("epsilon", self.epsilon)


@dataclass(frozen=True)
class Gamma(Rule):
    """The gamma rule of LRP: what has the sign of the sum counts 1 + gamma times.

    For inputs of any sign; for those that are not negative it is the rule of the overview.
    Raises ValueError for a negative gamma.

    References
    ----------
    G. Montavon et al., "Layer-wise relevance propagation: an overview", 2019, section 10.2.3;
    L. Andéol et al., "Learning domain invariant representations by joint Wasserstein distance
    minimization", 2021, for sums of either sign.
    """

    gamma: float = 0.25

    def __post_init__(self) -> None:
        _check_not_negative("gamma", self.gamma)


@dataclass(frozen=True)
class ZPlus(Rule):
    """The z+ rule of LRP: what adds to the sum gets relevance, what takes away from it none.

    References
    ----------
    G. Montavon, S. Lapuschkin, A. Binder, W. Samek, K.-R. Müller, "Explaining nonlinear
    classification decisions with deep Taylor decomposition", Pattern Recognition 65, 2017.
    """


KINDS = ("first", "convolution", "linear")

COMPOSITES: dict[str, dict[str, Rule]] = {
    "epsilon": {"convolution": Epsilon(), "linear": Epsilon()},
    "epsilon_plus": {"convolution": ZPlus(), "linear": Epsilon()},
    "epsilon_gamma": {"convolution": Gamma(), "linear": Epsilon()},
}


def divided(relevance: np.ndarray, z: np.ndarray, epsilon: float = 0.0) -> np.ndarray:
    """Return relevance / (z + epsilon * sign(z)), where 0 has the sign +, and 0 where that is 0."""
    below = z + np.where(z < 0, -epsilon, epsilon).astype(z.dtype) if epsilon else z
    return np.divide(relevance, below, out=np.zeros_like(below), where=below != 0)


def weighted(
    rule: Rule,
    node: Node,
    x: np.ndarray,
    y: np.ndarray,
    relevance: np.ndarray,
    scales: np.ndarray | None,
) -> np.ndarray:
    """Return the relevance of a layer's input by the gamma or z+ rule.

    Parameters
    ----------
    rule : Gamma or ZPlus
    node : Node
        Of the convolution or product.
    x, y : ndarray
        The layer's input and its result, after the batch norm that is folded into it.
    relevance : ndarray
        Of the result.
    scales : (C_out,) ndarray, optional
        The batch norm's.
    """
    apply, w = _products(node, scales)
    bias = y - apply(wrap(x), w)._array
    if isinstance(rule, Gamma):
        up = _signed(apply, x, w, bias, 1.0, rule.gamma)
        down = _signed(apply, x, w, bias, -1.0, rule.gamma)
        positive = y >= 0
        return up(np.where(positive, relevance, 0)) + down(np.where(positive, 0, relevance))
    return _signed(apply, x, w, bias, 1.0, None)(relevance)


def _products(
    node: Node, scales: np.ndarray | None
) -> tuple[Callable[[Tensor, np.ndarray], Tensor], np.ndarray]:
    """Return a layer without its bias as a function of input and weight, and its weight."""
    w: np.ndarray = unpack(node)[-1]._array
    given = node.attributes
    if kind(node) != "Convolution":
        w = w * given.get("alpha", 1) * (1 if scales is None else scales)
        return (lambda x, w: mm(x, wrap(w))), w
    rank, (stride, padding, dilation, groups) = w.ndim - 2, given["steps"]
    if scales is not None:
        w = w * scales.reshape(-1, *[1] * (rank + 1)).astype(w.dtype)
    if given["transposed"]:
        function: Any = getattr(conv, f"conv_transpose{rank}d")
        rest: tuple = (stride, padding, given["output_padding"], groups, dilation)
    else:
        function, rest = getattr(conv, f"conv{rank}d"), (stride, padding, dilation, groups)
    return (lambda x, w: function(x, wrap(w), None, *rest)), w


def _signed(
    apply: Callable[[Tensor, np.ndarray], Tensor],
    x: np.ndarray,
    w: np.ndarray,
    bias: np.ndarray,
    sign: float,
    gamma: float | None,
) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that shares relevance out among products, those of one sign favoured.

    Products x * w of that sign count 1 + gamma times, the others once; without gamma, only those
    of that sign count.
    """

    def favoured(values: np.ndarray, wanted: float) -> np.ndarray:
        kept = np.maximum(values, 0) if wanted > 0 else np.minimum(values, 0)
        return kept if gamma is None else values + values.dtype.type(gamma) * kept

    # An input's positive and negative elements, each with the weights that make products so.
    halves = [(np.maximum(x, 0), favoured(w, sign)), (np.minimum(x, 0), favoured(w, -sign))]
    halves = [half for half in halves if half[0].any()]

    def shared(relevance: np.ndarray) -> np.ndarray:
        total = np.zeros_like(x)
        if not relevance.any():
            return total
        z = favoured(bias, sign)
        for part, weight in halves:
            z = z + apply(wrap(part), weight)._array
        share = wrap(divided(relevance, z))
        for part, weight in halves:
            total += part * _adjoint(apply, part, weight, share)
        return total

    return shared


def _adjoint(
    apply: Callable[[Tensor, np.ndarray], Tensor], x: np.ndarray, w: np.ndarray, share: Tensor
) -> np.ndarray:
    """Return the gradient of a layer by its input, for a gradient of its result."""
    with enable_grad():
        leaf = wrap(np.array(x)).requires_grad_()
        (found,) = grad(apply(leaf, w), [leaf], share)
    return found._array
