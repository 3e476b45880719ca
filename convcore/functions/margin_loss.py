"""Losses with margins and of embeddings: hinge, triplet, ranking, cosine, multi-label.

``reduction`` is 'mean', 'sum' or 'none'; ``size_average`` and ``reduce`` are its older form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, scalar_name, wrap
from convcore.functions._support.arguments import check_arguments, number, refuse_complex
from convcore.functions.activation import logsigmoid, relu
from convcore.functions.arithmetic import add, div, mul, neg, rsub, sub
from convcore.functions.distance import pairwise_distance
from convcore.functions.elementwise import exp, log1p, pow, sqrt
from convcore.functions.index_along import index_select
from convcore.functions.loss_reduction import reduce_losses, reduction_name
from convcore.functions.piecewise import clamp_min, masked, minimum, where
from convcore.functions.reduce import mean, sum
from convcore.functions.scatter import gather
from convcore.functions.shape import reshape, unsqueeze

__all__ = [
    "cosine_embedding_loss",
    "hinge_embedding_loss",
    "margin_ranking_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]


# Pairs and triplets


@names_arguments
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the margin ranking loss max(0, margin - target * (input1 - input2)).

    Parameters
    ----------
    input1, input2 : Tensors that broadcast
    target : Tensor of 1, where the first is to be the larger one, and -1
    margin : number

    Raises
    ------
    RuntimeError
        The tensors differ in their number of axes.
    """
    check_arguments("margin_ranking_loss", input1=input1, input2=input2, target=target)
    reduction = reduction_name(reduction, size_average, reduce)
    margin = number("margin_ranking_loss", "margin", margin)
    ranks = [one._array.ndim for one in (input1, input2, target)]
    if len(set(ranks)) > 1:
        sizes = [
            f"{name}: {one.shape}"
            for name, one in (("input1", input1), ("input2", input2), ("target", target))
        ]
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            + ", ".join(sizes)
            + " "
        )
    return reduce_losses(clamp_min(rsub(mul(target, sub(input1, input2)), margin), 0), reduction)


@names_arguments
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the hinge loss: input where the target is 1, max(0, margin - input) where it is -1.

    Parameters
    ----------
    input : Tensor
        Distances.
    target : Tensor of 1 and -1 that broadcasts
    margin : number
    """
    check_arguments("hinge_embedding_loss", input=input, target=target)
    reduction = reduction_name(reduction, size_average, reduce)
    margin = number("hinge_embedding_loss", "margin", margin)
    signs = target._array
    away = where(wrap(signs != 1), clamp_min(rsub(input, margin), 0), 0.0)
    return reduce_losses(add(away, where(wrap(signs != -1), input, 0.0)), reduction)


@names_arguments
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the cosine loss: 1 - cos where the target is 1, max(0, cos - margin) where it is -1.

    Parameters
    ----------
    input1, input2 : (N, D) or (D,)
        cos is that of the angle between them.
    target : (N,) or ()
    margin : number
    """
    check_arguments("cosine_embedding_loss", input1=input1, input2=input2, target=target)
    reduction = reduction_name(reduction, size_average, reduce)
    margin = number("cosine_embedding_loss", "margin", margin)
    rank, signs = target._array.ndim, target._array
    if rank > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    for one in (input1, input2):
        if one._array.ndim != rank + 1:
            raise RuntimeError(
                f"{rank}D target tensor expects {rank + 1}D input tensors, but found inputs with "
                f"sizes {list(input1.shape)} and {list(input2.shape)}."
            )
    dot, first, second = (
        sum(mul(x, y), rank) for x, y in ((input1, input2), (input1, input1), (input2, input2))
    )
    cosine = div(dot, sqrt(mul(add(first, 1e-12), add(second, 1e-12))))
    alike = where(wrap(signs == 1), rsub(cosine, 1), 0.0)
    other = where(wrap(signs == -1), clamp_min(sub(cosine, margin), 0), 0.0)
    return reduce_losses(add(alike, other), reduction)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the triplet loss max(0, margin + d(anchor, positive) - d(anchor, negative)).

    Parameters
    ----------
    anchor, positive, negative : (N, D) or (D,)
    margin : number above 0
    p, eps : see `pairwise_distance`
    swap : bool
        Whether d(positive, negative) takes the place of the second distance where it is smaller.

    References
    ----------
    V. Balntas, E. Riba, D. Ponsa, K. Mikolajczyk, "Learning local feature descriptors with
    triplets and shallow convolutional neural networks", BMVC 2016.
    """
    check_arguments("triplet_margin_loss", anchor=anchor, positive=positive, negative=negative)
    reduction = reduction_name(reduction, size_average, reduce)
    margin, p, eps = (
        number("triplet_margin_loss", name, value)
        for name, value in (("margin", margin), ("p", p), ("eps", eps))
    )
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    distance = lambda x, y: pairwise_distance(x, y, p, eps)  # noqa: E731
    return reduce_losses(_triplet(anchor, positive, negative, distance, margin, swap), reduction)


@names_arguments
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Return the triplet loss with a distance function of your own; see `triplet_margin_loss`."""
    function = "triplet_margin_with_distance_loss"
    check_arguments(function, anchor=anchor, positive=positive, negative=negative)
    reduction = reduction_name(reduction)
    margin = number(function, "margin", margin)
    if not (distance_function is None or callable(distance_function)):
        kind = type(distance_function).__name__
        raise TypeError(f"{function}(): argument 'distance_function' must be callable, not {kind}")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    distance = pairwise_distance if distance_function is None else distance_function
    return reduce_losses(_triplet(anchor, positive, negative, distance, margin, swap), reduction)


def _triplet(
    anchor: Tensor, positive: Tensor, negative: Tensor, distance: Any, margin: float, swap: bool
) -> Tensor:
    ranks = [one._array.ndim for one in (anchor, positive, negative)]
    if len(set(ranks)) > 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {ranks[0]}D, positive {ranks[1]}D, and negative "
            f"{ranks[2]}D inputs"
        )
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = minimum(far, distance(positive, negative))
    return clamp_min(add(sub(near, far), margin), 0)


# Classes and labels


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the logistic loss log(1 + exp(-target * input)).

    Parameters
    ----------
    input : Tensor
    target : Tensor of 1 and -1 that broadcasts
    """
    check_arguments("soft_margin_loss", input=input, target=target)
    if input._array.dtype.kind != "c":
        kinds = [scalar_name(one._array.dtype) for one in (target, input)]
        refuse_complex(
            "result type {} can't be cast to the desired output type {}".format(*kinds), target
        )
    reduction = reduction_name(reduction, size_average, reduce)
    return reduce_losses(log1p(exp(neg(mul(target, input)))), reduction)


@names_arguments
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean over classes of max(0, margin - x[target] + x[class])^p, but the target's.

    Parameters
    ----------
    input : (N, C) or (C,)
    target : (N,) or (), of int64
    p : 1 or 2
    margin : number
    weight : (C,) or None
        A factor for each class as the target.
    """
    check_arguments("multi_margin_loss", input=input, target=target)
    reduction = reduction_name(reduction, size_average, reduce)
    margin = number("multi_margin_loss", "margin", margin)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight._array.ndim != 1:
        raise ValueError("weight must be one-dimensional")
    rows, labels = _rows(input), target if target._array.ndim else reshape(target, 1)
    given = labels._array
    if given.shape != rows._array.shape[:1]:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input "
            f"samples (batch size). Expected target size [{len(rows._array)}], but got "
            f"{list(target.shape)}. Input has shape {list(input.shape)}."
        )
    classes = rows._array.shape[1]
    if weight is not None and weight._array.size != classes:
        raise RuntimeError(
            f"inconsistent weight size, expected {classes} but got {list(weight.shape)}"
        )
    if given.size and not (given.min() >= 0 and given.max() < classes):
        raise RuntimeError("target out of range")
    losses = relu(add(sub(rows, gather(rows, 1, unsqueeze(labels, 1))), margin))
    losses = losses if p == 1 else pow(losses, 2)
    losses = masked(losses, np.arange(classes) != given[:, np.newaxis])
    if weight is not None:
        losses = mul(losses, unsqueeze(index_select(weight, 0, labels), 1))
    each = div(sum(losses, 1), classes)
    return reduce_losses(each if input._array.ndim > 1 else reshape(each, target.shape), reduction)


def _rows(x: Tensor) -> Tensor:
    if x._array.ndim > 2 or (x._array.ndim and not x._array.shape[-1]):
        raise RuntimeError(
            "Expected non-empty vector or matrix with optional 0-dim batch size, but got: "
            f"{list(x.shape)}"
        )
    return reshape(x, -1, x._array.shape[-1] if x._array.ndim else 1)


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the sum over labels y and other classes i of max(0, 1 - (x[y] - x[i])), over C.

    Parameters
    ----------
    input : (N, C) or (C,)
    target : Tensor of int64, of input's shape
        Each row holds the labels, then -1; what follows that does not count.
    """
    check_arguments("multilabel_margin_loss", input=input, target=target)
    reduction = reduction_name(reduction, size_average, reduce)
    rows = _rows(input)
    if target._array.shape != input._array.shape:
        raise RuntimeError(
            f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}"
        )
    labels: Any = target._array.reshape(rows._array.shape)
    if labels.size and not (labels.min() >= -1 and labels.max() < labels.shape[1]):
        raise RuntimeError("argument #2 'target' is out of range")
    counts = np.logical_and.accumulate(labels >= 0, axis=1)
    is_label = np.zeros(labels.shape, bool)
    n, place = np.nonzero(counts)
    is_label[n, labels[n, place]] = True
    of_labels = gather(rows, 1, wrap(np.where(counts, labels, 0)))
    apart = relu(add(sub(unsqueeze(rows, 1), unsqueeze(of_labels, 2)), 1))
    pairs = counts[:, :, np.newaxis] & ~is_label[:, np.newaxis, :]
    each = div(sum(masked(apart, pairs), (1, 2)), labels.shape[1])
    return reduce_losses(each if input._array.ndim > 1 else reshape(each, ()), reduction)


@names_arguments
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the binary cross-entropy of sigmoid(input), averaged over the classes.

    Parameters
    ----------
    input : (N, C) or (C,)
    target : Tensor of input's shape
    weight : Tensor or None
        Factors that broadcast.
    """
    check_arguments("multilabel_soft_margin_loss", input=input, target=target)
    reduction = reduction_name(reduction, size_average, reduce)
    likely, unlikely = logsigmoid(input), logsigmoid(neg(input))
    losses = neg(add(mul(target, likely), mul(rsub(target, 1), unlikely)))
    losses = losses if weight is None else mul(losses, weight)
    return reduce_losses(mean(losses, -1), reduction)


FUNCTIONS_ONLY = __all__
