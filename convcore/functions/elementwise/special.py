"""Logarithms exact at their edges, logit, erfc, and the inverse of erf."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore._tensor.dtypes import result_numpy
from convcore.autograd.grad_mode import mode
from convcore.autograd.node import record
from convcore.functions._support.arguments import check_kind, check_tensor, check_tensors, number
from convcore.functions._support.dispatch import of_each
from convcore.functions._support.in_place import in_place_methods
from convcore.functions._support.scipy_special import of_one, of_two
from convcore.functions.elementwise.arithmetic import (
    add,
    compute,
    div,
    mul,
    neg,
    operand,
    rsub,
    sub,
)
from convcore.functions.elementwise.compare import lt
from convcore.functions.elementwise.elementwise import _as_float, _of_input, exp, sigmoid, square
from convcore.functions.elementwise.in_float32 import in_float32, widened
from convcore.functions.elementwise.piecewise import clamp, masked, where
from convcore.functions.shapes.broadcast import fitted

__all__ = ["erfc", "erfinv", "logaddexp", "logit", "xlogy"]


@in_float32
def logaddexp(input: Tensor, other: Tensor) -> Tensor:
    """Return log(exp(input) + exp(other)), element by element, without overflow.

    Parameters
    ----------
    input, other : Tensors of real floating-point dtypes that broadcast

    Raises
    ------
    NotImplementedError
        The common dtype is one of integers or complex numbers.
    """
    check_tensors("logaddexp", input, other)
    check_kind("logaddexp_cpu", input, "f", other)
    out = wrap(compute(np.logaddexp, input._array, other._array))
    if mode.enabled:
        backward = fitted(_logaddexp_backward, input, other)
        record("LogaddexpBackward0", (input, other), out, backward, (input, other))
    return out


def _logaddexp_backward(needs: tuple[bool, ...], grad: Tensor, x: Tensor, y: Tensor) -> tuple:
    return (
        mul(grad, sigmoid(sub(x, y))) if needs[0] else None,
        mul(grad, sigmoid(sub(y, x))) if needs[1] else None,
    )


@in_float32
def xlogy(input: Any, other: Any) -> Tensor:
    """Return input * log(other), element by element, and 0 where ``input`` is 0.

    Where ``other`` is NaN so is the result.

    Parameters
    ----------
    input, other : Tensor or number, one of them at least a Tensor
        They broadcast.  Integers are computed in the default floating-point dtype.

    Examples
    --------
    >>> import convcore
    >>> convcore.xlogy(convcore.tensor([0.0, 2.0]), convcore.tensor([0.0, 1.0]))
    tensor([0., 0.])
    """
    x, y = (widened(operand(one, "xlogy()")) for one in (input, other))  # one beside float32, too
    if not isinstance(x, Tensor) and not isinstance(y, Tensor):
        check_tensor("xlogy", x)
    for tensor in (x, y):
        if isinstance(tensor, Tensor):
            check_kind("xlogy_cpu", tensor, "fiub")
    a, b = (one._array if isinstance(one, Tensor) else one for one in (x, y))
    if result_numpy(x, y).kind in "biu":
        a, b = (_as_float(one) if isinstance(one, np.ndarray) else one for one in (a, b))
    out = wrap(compute(of_two("xlogy"), a, b))
    if mode.enabled:
        number = 1 if not isinstance(x, Tensor) else 2 if not isinstance(y, Tensor) else 0
        record(f"XlogyBackward{number}", (x, y), out, fitted(_xlogy_backward, x, y), (x, y))
    return out


def _xlogy_backward(needs: tuple[bool, ...], grad: Tensor, x: Any, y: Any) -> tuple:
    grad_x = None
    if needs[0]:
        b = y._array if isinstance(y, Tensor) else y
        grad_x = masked(xlogy(grad, y), ~np.asarray((x._array == 0) & (b <= 0)))
    return grad_x, mul(grad, div(x, y)) if needs[1] else None


@in_float32
def erfinv(input: Tensor) -> Tensor:
    """Return the inverse error function of each element; NaN outside [-1, 1]."""
    check_tensor("erfinv", input)
    check_kind("erfinv_vml_cpu", input, "fiub")
    out = wrap(of_each(of_one("erfinv"), _as_float(input._array), warns=True))
    record("ErfinvBackward0", (input,), out, _erfinv_backward, (out,))
    return out


def _erfinv_backward(needs: tuple[bool, ...], grad: Tensor, y: Tensor) -> Tensor:
    return mul(mul(grad, exp(square(y))), math.sqrt(math.pi) / 2)


erfc = _of_input(
    of_one("erfc", "erfc_vml_cpu"),
    "1 - erf(x) of each element x, accurate where that is small",
    lambda g, x: mul(g, mul(exp(neg(square(x))), -2 / math.sqrt(math.pi))),
    "erfc",
)


@in_float32
def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """Return log(x / (1 - x)) of each element x, the inverse of `sigmoid`.

    Parameters
    ----------
    input : Tensor
        NaN outside [0, 1] without eps.
    eps : number
        Elements below eps are taken as eps first, and of the others those above 1 - eps as that.
    """
    check_tensor("logit", input)
    check_kind("logit_cpu", input, "fiub")
    if eps is not None:
        eps = number("logit", "eps", eps)
        input = where(lt(input, eps), eps, clamp(input, max=1 - eps))  # the bounds may cross
    x = _as_float(input._array)
    out = wrap(of_each(lambda x: np.asarray(np.log(x / (1 - x)), x.dtype), x, warns=True))
    record("LogitBackward0", (input,), out, _logit_backward, (input,))
    return out


def _logit_backward(needs: tuple[bool, ...], grad: Tensor, x: Tensor) -> Tensor:
    slope = div(grad, mul(add(x, 0.0), rsub(x, 1)))  # -0.0 is 0, where it is infinity
    outside = (x._array < 0) | (x._array > 1)
    if not outside.any():
        return slope
    return mul(slope, wrap(np.where(outside, math.nan, 1).astype(x._array.dtype)))


METHODS = in_place_methods(erfc, erfinv, logit, xlogy)
