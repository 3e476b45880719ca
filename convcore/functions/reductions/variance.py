"""Variance and standard deviation, alone and with the mean."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore.autograd.grad_mode import mode
from convcore.autograd.node import record
from convcore.functions._support.arguments import check_tensor, checked_number
from convcore.functions._support.axes import axes, expand_to, wide_total_of, with_numpy_names
from convcore.functions._support.errstate import ignore_errstate
from convcore.functions.elementwise.arithmetic import add, div, mul, sub
from convcore.functions.elementwise.piecewise import masked
from convcore.functions.reductions.reduce import mean

__all__ = ["std", "std_mean", "var", "var_mean"]


@with_numpy_names
def var(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """Return the variance of all elements, or over some axes.

    Parameters
    ----------
    input : Tensor of a floating-point or complex dtype
    dim : int, tuple of ints, or None for all axes
    unbiased : bool
        An older way of saying ``correction=1`` or ``correction=0``.
    keepdim : bool
    correction : number
        The sum of squared distances is divided by the number of elements minus this; 1 if not
        given.

    Notes
    -----
    ``var(input, unbiased)``, with a bool in the place of ``dim``, is understood.
    """
    check_tensor("var", input)
    return _deviation("VarBackward0", "var", input, dim, unbiased, keepdim, correction)


@with_numpy_names
def std(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """Return the standard deviation, the square root of `var`, whose arguments it takes."""
    check_tensor("std", input)
    return _deviation("StdBackward0", "std", input, dim, unbiased, keepdim, correction)


def _deviation(
    node: str, function: str, x: Tensor, dim: Any, unbiased: Any, keepdim: bool, correction: Any
) -> Tensor:
    """Return the variance or the standard deviation, recorded."""
    if x._array.dtype.kind not in "fcV":
        raise RuntimeError("std and var only support floating point and complex dtypes")
    dim, correction = _corrected(function, dim, unbiased, keepdim, correction)
    over = axes(dim, x._array.ndim)
    out, slope = _var_or_std(function, x._array, over, keepdim, correction)
    if mode.enabled:

        def backward(needs: tuple[bool, ...], grad: Tensor, x: Tensor, y: Any) -> Tensor:
            return _input_gradient(grad, x, y, over, slope)

        record(node, (x,), out, backward, (x, out if function == "std" else None))
    return out


def _var_or_std(
    function: str, array: np.ndarray, over: tuple[int, ...], keepdim: bool, correction: float
) -> tuple[Tensor, float]:
    """Return the variance or standard deviation, and the factor 2 / (number - correction)."""
    number = math.prod([array.shape[one] for one in over])
    free = max(number - correction, 0)
    if free <= 0:
        warnings.warn(
            f"{function}(): degrees of freedom is <= 0. Correction should be strictly less than "
            "the reduction factor (input numel divided by output numel).",
            stacklevel=5,
        )
    value = ignore_errstate(_variance, array, over, keepdim, number, free)
    if array.dtype.char in "efF" and not np.isfinite(value).all():  # a square was too large
        wide = array.astype(np.result_type(array, np.float64))
        value = ignore_errstate(_variance, wide, over, keepdim, number, free)
    if function.startswith("std"):
        value = ignore_errstate(np.sqrt, value)
    out = wrap(ignore_errstate(np.asarray, value, array.real.dtype))
    return out, 2 / free if free else math.nan


def _input_gradient(grad: Tensor, x: Tensor, y: Any, over: tuple[int, ...], slope: float) -> Tensor:
    """Return the gradient of x from that of its variance, or of its standard deviation ``y``."""
    if y is not None:
        grad = masked(div(grad, mul(y, 2)), y._array != 0)
    centred = sub(x, mean(x, over, True)) if over else sub(x, x)
    return mul(mul(expand_to(grad, over, x._array.shape), slope), centred)


def _corrected(
    function: str, dim: Any, unbiased: Any, keepdim: bool, correction: Any
) -> tuple[Any, float]:
    """Return ``dim`` and ``correction``, translated from the older arguments if those are given."""
    if isinstance(dim, bool) and unbiased is None and correction is None and not keepdim:
        dim, unbiased = None, dim
    if correction is None:
        return dim, 1 if unbiased is None else int(unbiased)
    return dim, checked_number(function, correction, "correction", real=True)


def _variance(
    array: np.ndarray, over: tuple[int, ...], keepdims: bool, number: int, free: float
) -> np.ndarray:
    mean = np.true_divide(wide_total_of(array, over, True), number)
    centred = array - mean
    squares = np.square(centred.real) + (np.square(centred.imag) if array.dtype.kind == "c" else 0)
    return np.true_divide(wide_total_of(np.asarray(squares), over, keepdims), free)


@with_numpy_names
def var_mean(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the variance and the mean, of all elements or over some axes.

    The arguments are those of `var`.
    """
    check_tensor("var_mean", input)
    return _with_mean("VarMeanBackward0", "var_mean", input, dim, unbiased, keepdim, correction)


@with_numpy_names
def std_mean(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the standard deviation and the mean, of all elements or over some axes.

    The arguments are those of `var`.
    """
    check_tensor("std_mean", input)
    return _with_mean("StdMeanBackward0", "std_mean", input, dim, unbiased, keepdim, correction)


def _with_mean(
    node: str, function: str, x: Tensor, dim: Any, unbiased: Any, keepdim: bool, correction: Any
) -> tuple[Tensor, Tensor]:
    """Return the variance or standard deviation, and the mean, recorded as one node."""
    if x._array.dtype.kind not in "fcV":
        raise RuntimeError(f"{function} only support floating point and complex dtypes")
    dim, correction = _corrected(function, dim, unbiased, keepdim, correction)
    shape, over = x._array.shape, axes(dim, x._array.ndim)
    out, slope = _var_or_std(function, x._array, over, keepdim, correction)
    outs = out, mean(wrap(x._array), dim, keepdim)
    number = max(math.prod([shape[one] for one in over]), 1)

    def backward(needs: tuple[bool, ...], grads: tuple, x: Tensor, y: Any) -> Tensor:
        grad_first, grad_mean = grads
        parts = []
        if grad_first is not None:
            parts.append(_input_gradient(grad_first, x, y, over, slope))
        if grad_mean is not None:
            parts.append(expand_to(div(grad_mean, number), over, shape))
        return parts[0] if len(parts) == 1 else add(*parts)

    record(node, (x,), outs, backward, (x, out if function == "std_mean" else None))
    return outs


FUNCTIONS_ONLY = {"std_mean", "var_mean"}
