"""The gamma function's logarithm and its derivatives.

References
----------
M. Abramowitz and I. A. Stegun, "Handbook of Mathematical Functions", 1964, chapter 6.
"""

from __future__ import annotations

import functools

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore.autograd.grad_mode import mode
from convcore.autograd.node import record
from convcore.engine.runtime.checks import plain
from convcore.functions._support.dispatch import of_each
from convcore.functions._support.in_place import in_place_methods
from convcore.functions._support.scipy_special import of_one
from convcore.functions.elementwise.arithmetic import mul
from convcore.functions.elementwise.elementwise import Unary, _as_float, _of_input
from convcore.functions.elementwise.in_float32 import in_float32

__all__ = ["digamma", "lgamma"]


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
    """Return the n-th derivative of `digamma` at each element, n > 0; NaN below 0 for n above 1."""
    out = wrap(of_each(functools.partial(_polygamma, n), _as_float(input._array), warns=True))
    if mode.enabled:
        backward = lambda needs, grad, x: mul(grad, polygamma(n + 1, x))  # noqa: E731
        record("PolygammaBackward0", (input,), out, backward, (input,))
    return out


METHODS = in_place_methods(digamma, lgamma)
