"""The gamma function's logarithm and its derivatives, and the incomplete gamma functions.

References
----------
M. Abramowitz and I. A. Stegun, "Handbook of Mathematical Functions", 1964, chapter 6.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, wrap
from convcore.autograd.grad_mode import mode
from convcore.autograd.node import record
from convcore.engine.integers import as_int
from convcore.engine.runtime.checks import plain
from convcore.functions._support.arguments import check_kind, check_tensor, check_tensors
from convcore.functions._support.dispatch import of_each
from convcore.functions._support.in_place import in_place_methods
from convcore.functions._support.scipy_special import of_one, of_two
from convcore.functions.arithmetic import add, compute, mul, neg, sub
from convcore.functions.broadcast import fitted
from convcore.functions.elementwise import Unary, _as_float, _of_input, exp, log
from convcore.functions.in_float32 import in_float32, widened
from convcore.functions.piecewise import where
from convcore.functions.reduce import sum
from convcore.functions.shape import unsqueeze

__all__ = ["digamma", "igamma", "igammac", "lgamma", "mvlgamma", "polygamma"]


def _polygamma(n: int, array: np.ndarray) -> np.ndarray:
    from scipy import special

    value = special.polygamma(n, plain(array).astype(np.float64))
    if n == 1:  # reflected, A&S 6.4.7: below 0 there is no series
        turned = (np.pi / np.sin(np.pi * array)) ** 2 - special.polygamma(1, 1.0 - array)
        value = np.where(array < 0, turned, value)
    return np.asarray(value, array.dtype)


_gammaln = of_one("gammaln")


def _log_gamma(array: np.ndarray) -> np.ndarray:
    return np.where(np.isneginf(array), -array, _gammaln(array))  # C's: infinite, as at any pole


lgamma: Unary = _of_input(
    _log_gamma,
    "the logarithm of the gamma function's absolute value, of each element",
    lambda g, x: mul(g, digamma(x)),
    "lgamma",
)
digamma: Unary = _of_input(
    of_one("digamma", "digamma"),
    "the derivative of `lgamma` at each element",
    lambda g, x: mul(g, polygamma(1, x)),
    "digamma",
)


@in_float32
def polygamma(n: int, input: Tensor) -> Tensor:
    """Return the n-th derivative of `digamma` at each element; n = 1 is the trigamma function.

    Raises
    ------
    RuntimeError
        n is negative.

    Notes
    -----
    Below 0 it is NaN for n above 1.
    """
    check_tensor("polygamma", input)
    check_kind("polygamma", input, "fiub")
    n = as_int(n)
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    if n == 0:
        return digamma(input)
    out = wrap(of_each(functools.partial(_polygamma, n), _as_float(input._array), warns=True))
    if mode.enabled:
        backward = lambda needs, grad, x: mul(grad, polygamma(n + 1, x))  # noqa: E731
        record("PolygammaBackward0", (input,), out, backward, (input,))
    return out


@names_arguments
def mvlgamma(input: Tensor, p: int) -> Tensor:
    """Return the logarithm of the multivariate gamma function of p dimensions.

    log(pi) p (p - 1) / 4 + the sum over i < p of lgamma(input - i / 2)

    Raises
    ------
    RuntimeError
        p is below 1.
    """
    check_tensor("mvlgamma", input)
    p = as_int(p)
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    dtype = _as_float(np.empty(0, input._array.dtype)).dtype
    steps = wrap(np.arange(p).astype(dtype) / 2)
    terms = lgamma(sub(unsqueeze(input, -1), steps))
    return add(sum(terms, -1), math.log(math.pi) * p * (p - 1) / 4)


@in_float32
def igamma(input: Tensor, other: Tensor) -> Tensor:
    """Return the lower incomplete gamma function P(input, other), which rises from 0 to 1.

    Parameters
    ----------
    input, other : Tensors of real floating-point dtypes that broadcast
        There is no gradient for ``input``.

    Raises
    ------
    RuntimeError
        The gradient for ``input`` is asked for, in backward.
    """
    return _incomplete("igamma", "gammainc", input, other)


@in_float32
def igammac(input: Tensor, other: Tensor) -> Tensor:
    """Return the upper incomplete gamma function 1 - P(input, other); see `igamma`."""
    return _incomplete("igammac", "gammaincc", input, other)


def _incomplete(name: str, routine: str, a: Tensor, x: Tensor) -> Tensor:
    check_tensors(name, a, x)
    a, x = widened(a), widened(x)  # one beside float32, too
    check_kind(f"{name}_cpu", a, "f")
    check_kind(f"{name}_cpu", x, "f")

    def backward(needs: tuple[bool, ...], grad: Tensor, a: Tensor, x: Tensor) -> tuple:
        if needs[0]:
            raise NotImplementedError(f"the derivative for '{name}: input' is not implemented.")
        density = exp(sub(sub(mul(sub(a, 1), log(x)), x), lgamma(a)))
        density = where(wrap(x._array > 0), density, 0.0)
        return None, mul(grad, density if name == "igamma" else neg(density))

    out = wrap(compute(of_two(routine), a._array, x._array))
    record(f"{name.title()}Backward0", (a, x), out, fitted(backward, a, x), (a, x))
    return out


@names_arguments
def _polygamma_of(self: Tensor, n: int) -> Tensor:
    """Return `polygamma` of the tensor."""
    return polygamma(n, self)


@names_arguments
def _polygamma_(self: Tensor, n: int) -> Tensor:
    """Replace the tensor, in place, by `polygamma` of it."""
    return self.copy_(polygamma(n, self))


FUNCTIONS_ONLY = {"polygamma"}
METHODS = {
    **in_place_methods(digamma, igamma, igammac, lgamma, mvlgamma),
    "polygamma": _polygamma_of,
    "polygamma_": _polygamma_,
}
