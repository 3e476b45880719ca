"""Reductions of losses: 'mean', 'sum' or 'none', and ``size_average`` and ``reduce`` of old."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from convcore._errors import hinted
from convcore._tensor import Tensor, wrap
from convcore.functions._support.axes import expand_to, wide_total_of
from convcore.functions._support.errstate import ignore_errstate
from convcore.functions.elementwise.arithmetic import div, mul
from convcore.functions.reductions.reduce import mean, sum

__all__: list[str] = []


def reduction_name(
    reduction: str,
    size_average: Any = None,
    reduce: Any = None,
    frames: int = 1,
    more: tuple[str, ...] = (),
) -> str:
    """Return the reduction's name, also where it is given in the older way.

    ``more`` are those of the loss that the caller computes itself, for the error to name them.  A
    warning of that points to who called the function, so many frames above it.
    """
    if size_average is None and reduce is None:
        if reduction not in ("none", "mean", "sum"):
            raise hinted(
                ValueError(f"{reduction} is not a valid value for reduction"),
                f"allowed are {', '.join(map(repr, (*more, 'mean', 'sum')))} and 'none'",
            )
        return reduction
    return older_reduction(size_average, reduce, stacklevel=3 + frames)


def older_reduction(size_average: bool | None, reduce: bool | None, stacklevel: int) -> str:
    """Return the reduction's name of the older arguments, with a warning; None is True."""
    summed = "sum" if size_average is not None and not size_average else "mean"
    name = "none" if reduce is not None and not reduce else summed
    warnings.warn(
        f"size_average and reduce args will be deprecated, please use reduction='{name}' instead.",
        stacklevel=stacklevel,
    )
    return name


def reduced_array(values: np.ndarray, reduction: str) -> Tensor:
    if reduction == "none":
        return wrap(values)
    total = wide_total_of(values, tuple(range(values.ndim)), False)
    if reduction == "mean":
        total = ignore_errstate(np.true_divide, total, values.size)
    return wrap(np.asarray(total, values.dtype))


def gradient_of_each(grad: Tensor, reduction: str, shape: tuple[int, ...]) -> Tensor:
    """Return the gradient of each element's loss, from that of the reduced loss."""
    if reduction == "none":
        return grad
    if reduction == "mean":
        grad = div(grad, max(math.prod(shape), 1))
    return expand_to(grad, tuple(range(len(shape))), shape)


def reduce_losses(x: Tensor, reduction: str) -> Tensor:
    """Return the reduced tensor, by the differentiable functions."""
    if reduction == "none":
        return x
    return mean(x) if reduction == "mean" else sum(x)


def reduce_weighted(x: Tensor, weight: Tensor, reduction: str) -> Tensor:
    """Return the products with the weights, reduced; the mean is the weighted one."""
    values = mul(x, weight)
    return (
        div(sum(values), sum(weight)) if reduction == "mean" else reduce_losses(values, reduction)
    )
