"""Gamma and Dirichlet numbers with gradients for their parameters.

A sample x is differentiated at a fixed value of its distribution function F(x; a): dx/da is the
slope of the quantile there, which is computed by central differences in float64.

References
----------
M. Figurnov, S. Mohamed and A. Mnih, "Implicit reparameterization gradients", 2018.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore.autograd.node import record, record_without_derivative
from convcore.functions._support.arguments import check_kind
from convcore.functions._support.errstate import ignore_errstate
from convcore.functions.elementwise.arithmetic import mul, sub
from convcore.functions.reductions.reduce import sum
from convcore.random.generator import Generator
from convcore.random.rejection import draw_each, gamma_number

__all__: list[str] = []

# Of the parameter: the error of the differences is the square of it.
_STEP = 1e-4


def standard_gamma(alpha: Tensor, generator: Generator | None = None) -> Tensor:
    """Draw a gamma number of rate 1 for each element, which is its shape parameter.

    Raises
    ------
    RuntimeError
        A second derivative is asked for, in backward.
    """
    check_kind("gamma_cpu", alpha, "f")
    array = alpha._array
    drawn = draw_each(gamma_number, generator, array.dtype, array)
    out = wrap(np.maximum(drawn, np.finfo(array.dtype).tiny))
    record("StandardGammaBackward0", (alpha,), out, _gamma_backward, (alpha, out))
    return out


def _gamma_backward(needs: tuple[bool, ...], grad: Tensor, alpha: Tensor, x: Tensor) -> Tensor:
    return mul(grad, _slope("_standard_gamma_grad", _gamma_slope, alpha, x))


def _slope(name: str, slope: Callable, *args: Tensor) -> Tensor:
    """Return a derivative computed on arrays, which cannot be differentiated again."""
    values = ignore_errstate(slope, *(one._array.astype(np.float64) for one in args))
    out = wrap(np.asarray(values, args[0]._array.dtype))
    record_without_derivative(name, args, out)
    return out


def _gamma_slope(alpha: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return dx/d alpha, through the smaller tail of the distribution."""
    from scipy import special

    lower, upper = special.gammainc(alpha, x), special.gammaincc(alpha, x)
    return _difference(
        lambda a: np.where(
            lower < upper, special.gammaincinv(a, lower), special.gammainccinv(a, upper)
        ),
        alpha,
    )


def _difference(quantile: Callable, a: np.ndarray) -> np.ndarray:
    """Return the central difference of a quantile that depends on a parameter."""
    step = _STEP * a
    return (quantile(a + step) - quantile(a - step)) / (2 * step)


def dirichlet(concentration: Tensor, generator: Generator | None = None) -> Tensor:
    """Draw points of the simplex along the last axis, from gamma numbers over their sum.

    Notes
    -----
    Element i is Beta(a_i, sum of the others) distributed.  With its slope s_i the others move by
    -x_j s_i / (1 - x_i), so that the gradient is s_i / (1 - x_i) (grad_i - sum of grad x).
    """
    check_kind("dirichlet", concentration, "f")
    array = concentration._array
    drawn = draw_each(gamma_number, generator, np.dtype(np.float64), array)
    share = ignore_errstate(np.true_divide, drawn, drawn.sum(-1, keepdims=True))
    tiny = np.finfo(array.dtype).tiny
    out = wrap(np.maximum(share, tiny).astype(array.dtype))
    record("DirichletBackward0", (concentration,), out, _dirichlet_backward, (concentration, out))
    return out


def _dirichlet_backward(needs: tuple[bool, ...], grad: Tensor, a: Tensor, x: Tensor) -> Tensor:
    slope = _slope("_dirichlet_grad", _dirichlet_slope, a, x)
    return mul(slope, sub(grad, sum(mul(x, grad), -1, True)))


def _dirichlet_slope(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the slope of each element's beta distribution, over 1 - x."""
    from scipy import special

    rest = a.sum(-1, keepdims=True) - a
    lower, upper = special.betainc(a, rest, x), special.betainc(rest, a, 1 - x)
    slope = _difference(
        lambda a: np.where(
            lower < upper,
            special.betaincinv(a, rest, lower),
            1 - special.betaincinv(rest, a, upper),
        ),
        a,
    )
    return slope / (1 - x)
