"""Losses with margins and of embeddings: hinge, triplet, ranking, cosine.

``reduction`` is 'mean', 'sum' or 'none'; ``size_average`` and ``reduce`` are its older form.
"""

from __future__ import annotations

from typing import Any

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, wrap
from convcore.functions._support.arguments import check_arguments, number
from convcore.functions.elementwise.arithmetic import add, div, mul, rsub, sub
from convcore.functions.elementwise.elementwise import sqrt
from convcore.functions.elementwise.piecewise import clamp_min, minimum, where
from convcore.functions.losses.loss_reduction import reduce_losses, reduction_name
from convcore.functions.reductions.distance import pairwise_distance
from convcore.functions.reductions.reduce import sum

__all__ = [
    "cosine_embedding_loss",
    "hinge_embedding_loss",
    "margin_ranking_loss",
    "triplet_margin_loss",
]


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
    ranks = [one._array.ndim for one in (anchor, positive, negative)]
    if len(set(ranks)) > 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {ranks[0]}D, positive {ranks[1]}D, and negative "
            f"{ranks[2]}D inputs"
        )
    near, far = (pairwise_distance(anchor, one, p, eps) for one in (positive, negative))
    if swap:
        far = minimum(far, pairwise_distance(positive, negative, p, eps))
    return reduce_losses(clamp_min(add(sub(near, far), margin), 0), reduction)


FUNCTIONS_ONLY = __all__
