"""Special functions that PyTorch has in torch.special alone: normal quantiles, Bessel functions ...

References
----------
M. Abramowitz and I. A. Stegun, "Handbook of Mathematical Functions", 1964, chapters 7, 9 and 23:
the derivatives.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore.autograd.node import record
from convcore.functions._support.arguments import check_kind, check_tensor
from convcore.functions._support.dispatch import of_each
from convcore.functions._support.scipy_special import of_one, of_two
from convcore.functions.arithmetic import add, compute, div, mul, neg, operand, sub
from convcore.functions.broadcast import fitted
from convcore.functions.elementwise import Unary, _as_float, exp, log, log1p, named, sgn, square
from convcore.functions.in_float32 import in_float32
from convcore.functions.piecewise import masked, where

__all__: list[str] = []

Gradient = Callable[[Tensor, Tensor, Tensor], Tensor]


def _special(
    name: str, does: str, gradient: Gradient | None = None, routine: str = "", node: str = ""
) -> Any:
    """Return the function of a tensor that SciPy has of an array.

    Parameters
    ----------
    name : str
    does : str
        What it returns, for its docstring.
    gradient : callable
        ``gradient(grad, x, y)`` of Tensors, y the result.
    routine : SciPy's name, if it is another
    node : what the graph's node is named after
    """
    title = node or "Special" + name.title()

    def backward(needs: tuple[bool, ...], grad: Tensor, x: Tensor, y: Tensor) -> Tensor:
        if gradient is None:
            raise NotImplementedError(
                f"the derivative for 'special_{name}: self' is not implemented."
            )
        return gradient(grad, x, y)

    def function(input: Tensor) -> Tensor:
        check_tensor(f"special_{name}", input)
        check_kind(f"{name}_cpu", input, "fiub")
        out = wrap(of_each(of_one(routine or name), _as_float(input._array), warns=True))
        record(f"{title}Backward0", (input,), out, backward, (input, out))
        return out

    return in_float32(named(function, name, does))


# The normal distribution

_PER_ROOT = 1 / math.sqrt(2 * math.pi)

ndtr = _special(
    "ndtr",
    "the standard normal distribution function at each element",
    lambda g, x, y: mul(g, mul(exp(mul(square(x), -0.5)), _PER_ROOT)),
)
ndtri = _special(
    "ndtri",
    "the standard normal quantile of each element, the inverse of ndtr",
    lambda g, x, y: mul(g, mul(exp(mul(square(y), 0.5)), 1 / _PER_ROOT)),
)
erfcx = _special(
    "erfcx",
    "exp(x^2) erfc(x) of each element x",
    lambda g, x, y: mul(g, sub(mul(mul(x, y), 2), 2 / math.sqrt(math.pi))),
)
log_ndtr = _special(
    "log_ndtr",
    "the logarithm of the standard normal distribution function at each element",
    lambda g, x, y: mul(div(g, erfcx(mul(x, -math.sqrt(0.5)))), math.sqrt(2 / math.pi)),
    node="SpecialLogNdtr",
)


entr = _special(
    "entr",
    "-x log(x) of each element x, 0 at 0 and -inf below,",
    lambda g, x, y: mul(g, neg(add(log(x), 1))),
)


@in_float32
def xlog1py(input: Any, other: Any) -> Tensor:
    """Return input * log(1 + other), and 0 where ``input`` is 0 and ``other`` is no NaN.

    Parameters
    ----------
    input, other : Tensor or number, one of them at least a Tensor
        They broadcast.
    """

    def backward(needs: tuple[bool, ...], grad: Tensor, x: Tensor, y: Tensor) -> tuple:
        grad_x = None
        if needs[0]:
            flat = (x._array == 0) & (y._array <= -1)
            grad_x = masked(mul(grad, log1p(y)), ~np.asarray(flat))
        return grad_x, mul(grad, div(x, add(y, 1))) if needs[1] else None

    x, y = _floats("xlog1py()", input, other)
    check_kind("xlog1py_cpu", x, "fiubV", y)
    out = wrap(compute(of_two("xlog1py"), x._array, y._array))
    record("SpecialXlog1PyBackward0", (x, y), out, fitted(backward, x, y), (x, y))
    return out


def _floats(function: str, *given: Any) -> list[Tensor]:
    """Return operands as Tensors, of the default floating-point dtype if all are integers."""
    values = [operand(one, function) for one in given]
    if not any(isinstance(one, Tensor) for one in values):
        raise TypeError(f"{function}: one of the arguments must be Tensor, got two numbers")
    tensors = [
        one if isinstance(one, Tensor) else wrap(_as_float(np.asarray(one, np.float32)))
        for one in values
    ]
    if all(one._array.dtype.kind in "biu" for one in values if isinstance(one, Tensor)):
        tensors = [wrap(_as_float(one._array)) for one in tensors]
    return tensors


@in_float32
def zeta(input: Any, other: Any) -> Tensor:
    """Return the Hurwitz zeta function, the sum over k of (k + other)^-input.

    There is no gradient for ``input``.
    """

    def backward(needs: tuple[bool, ...], grad: Tensor, x: Tensor, y: Tensor) -> tuple:
        if needs[0]:
            raise RuntimeError("the derivative for 'special_zeta: self' is not implemented.")
        return None, mul(grad, mul(neg(x), zeta(add(x, 1), y)))

    x, y = _floats("zeta()", input, other)
    out = wrap(compute(of_two("zeta"), x._array, y._array))
    record("SpecialZetaBackward0", (x, y), out, fitted(backward, x, y), (x, y))
    return out


# Bessel functions


def _over(y: Tensor, x: Tensor, limit: float) -> Tensor:
    """Return y / x, and its limit at 0."""
    flat = x._array == 0
    return where(wrap(flat), limit, div(y, where(wrap(flat), 1.0, x)))


i0: Unary = _special(
    "i0",
    "the modified Bessel function of the first kind and order 0",
    lambda g, x, y: mul(g, i1(x)),
    node="I0",
)
i1: Unary = _special(
    "i1",
    "the modified Bessel function of the first kind and order 1",
    lambda g, x, y: mul(g, sub(i0(x), _over(y, x, 0.5))),
)
i0e: Unary = _special(
    "i0e",
    "exp(-|x|) i0(x) of each element x",
    lambda g, x, y: mul(g, sub(i1e(x), mul(sgn(x), y))),
    node="SpecialI0E",
)
i1e: Unary = _special(
    "i1e",
    "exp(-|x|) i1(x) of each element x",
    lambda g, x, y: mul(g, sub(sub(i0e(x), mul(sgn(x), y)), _over(y, x, 0.5))),
    node="SpecialI1E",
)
bessel_j0 = _special("bessel_j0", "the Bessel function of the first kind and order 0", None, "j0")
bessel_j1 = _special("bessel_j1", "the Bessel function of the first kind and order 1", None, "j1")
bessel_y0 = _special("bessel_y0", "the Bessel function of the second kind and order 0", None, "y0")
bessel_y1 = _special("bessel_y1", "the Bessel function of the second kind and order 1", None, "y1")
modified_bessel_i0: Unary = _special("modified_bessel_i0", "`i0` of each element", None, "i0")
modified_bessel_i1: Unary = _special("modified_bessel_i1", "`i1` of each element", None, "i1")
modified_bessel_k0 = _special(
    "modified_bessel_k0", "the modified Bessel function of the second kind, order 0", None, "k0"
)
modified_bessel_k1 = _special(
    "modified_bessel_k1", "the modified Bessel function of the second kind, order 1", None, "k1"
)
