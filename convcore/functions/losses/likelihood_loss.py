"""Negative log-likelihoods of Poisson and normal distributions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, scalar_name, wrap
from convcore._tensor.dtype_names import C_NAMES
from convcore._tensor.dtypes import can_cast_numpy, common
from convcore.functions._support.arguments import check_arguments, number
from convcore.functions._support.errstate import ignore_errstate
from convcore.functions.elementwise.arithmetic import add, div, mul, sub
from convcore.functions.elementwise.elementwise import exp, log, square
from convcore.functions.elementwise.piecewise import where
from convcore.functions.losses.loss_reduction import reduce_losses, reduction_name
from convcore.functions.reductions.distance import at_least
from convcore.functions.shapes.shape import unsqueeze

__all__ = ["gaussian_nll_loss", "poisson_nll_loss"]


@names_arguments
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: Any = None,
    eps: float = 1e-8,
    reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the negative log-likelihood of counts under Poisson distributions.

    Parameters
    ----------
    input : Tensor
        Logarithms of the means, or the means themselves.
    target : Tensor of counts
    log_input : bool
        Whether the input holds logarithms.
    full : bool
        Whether log(target!) is added, by Stirling's formula, where the target is above 1.
    eps : number
        Added to means before their logarithm is taken.
    reduction : 'mean', 'sum' or 'none'
    """
    check_arguments("poisson_nll_loss", input=input, target=target)
    reduction = reduction_name(reduction, size_average, reduce)
    eps = number("poisson_nll_loss", "eps", eps)
    if log_input:
        losses = sub(exp(input), mul(target, input))
    else:
        losses = sub(input, mul(target, log(add(input, eps))))
    if full:
        large = where(wrap(target._array > 1), target, 1)
        stirling = add(sub(mul(large, log(large)), large), mul(log(mul(large, math.tau)), 0.5))
        losses = add(losses, where(wrap(target._array > 1), stirling, 0.0))
    return reduce_losses(losses, reduction)


@names_arguments
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Return the negative log-likelihood of targets under normal distributions.

    Parameters
    ----------
    input : Tensor
        The means.
    target : Tensor that broadcasts with them
    var : Tensor of input's shape, the last axis of which may be 1 or missing; or a number
        The variances.
    full : bool
        Whether the constant log(2 pi) / 2 is added.
    eps : number
        The least variance; the gradient of smaller ones passes.
    reduction : 'mean', 'sum' or 'none'

    Raises
    ------
    ValueError
        A variance is negative, or they are of another shape.
    RuntimeError
        The variances are integers or bools, and ``eps`` is no such number.
    """
    check_arguments("gaussian_nll_loss", input=input, target=target)
    if not isinstance(var, Tensor):
        var = number("gaussian_nll_loss", "var", var)
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = mul(wrap(np.ones(input._array.shape, input._array.dtype)), var)
    elif np.any(ignore_errstate(np.less, var._array, 0)):
        raise ValueError("var has negative entry/entries")
    shape, given = input._array.shape, var._array.shape
    if given != shape:
        if shape[:-1] == given:
            var = unsqueeze(var, -1)
        elif not (len(shape) == len(given) and _differ_in_ones(shape, given)):
            raise ValueError("var is of incorrect size")
    reduction = _checked(reduction)
    eps = number("gaussian_nll_loss", "eps", eps)
    result, given_dtype = common(var._array, eps), var._array.dtype
    if given_dtype.kind == "b" or not can_cast_numpy(result, given_dtype):
        raise RuntimeError(
            f"result type {scalar_name(result)} can't be cast to the desired output type "
            f"{C_NAMES[given_dtype.name]}"
        )
    var = at_least(var, eps)
    losses = mul(add(log(var), div(square(sub(input, target)), var)), 0.5)
    return reduce_losses(add(losses, 0.5 * math.log(math.tau)) if full else losses, reduction)


def _differ_in_ones(shape: tuple[int, ...], given: tuple[int, ...]) -> bool:
    """Return whether shapes differ in one axis, which is 1 in ``given``."""
    differing = [b for a, b in zip(shape, given, strict=True) if a != b]
    return differing == [1]


def _checked(reduction: str) -> str:
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    return reduction


FUNCTIONS_ONLY = __all__
