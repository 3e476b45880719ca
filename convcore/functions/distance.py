"""Distances and angles of vectors: cosine similarity, pairwise distance, L_p normalisation."""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore.functions._support.arguments import check_arguments, check_tensor
from convcore.functions.arithmetic import add, div, mul, sub
from convcore.functions.broadcast import expand_as
from convcore.functions.piecewise import clamp_min
from convcore.functions.reduce import norm, sum

__all__ = ["cosine_similarity", "normalize", "pairwise_distance"]


def normalize(input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12) -> Tensor:
    """Return the tensor over its norm along some axes, or over ``eps`` where that is larger."""
    check_tensor("normalize", input)
    size = clamp_min(norm(input, p, dim, True), eps)
    return div(input, expand_as(size, input))


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Return the cosine of the angle between vectors that lie along an axis.

    Parameters
    ----------
    x1, x2 : Tensors that broadcast
    dim : int
    eps : number
        Shorter vectors count as having this length, but in the gradient, as in PyTorch.
    """
    check_arguments("cosine_similarity", x1=x1)
    directions = [div(x, _at_least(norm(x, 2.0, dim, True), eps)) for x in (x1, x2)]
    return sum(mul(*directions), dim)


def _at_least(x: Tensor, least: float) -> Tensor:
    """Return max(x, least) with the whole gradient for ``x``, as in PyTorch."""
    array = x._array
    return add(x, wrap(np.asarray(np.maximum(array, array.dtype.type(least)) - array)))


def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """Return the norm along the last axis of x1 - x2 + eps."""
    return norm(add(sub(x1, x2), eps), p, -1, keepdim)


FUNCTIONS_ONLY = __all__
