"""In-place random fills (normal_, uniform_, bernoulli_ ...), drawn by `convcore.random`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, scalar_name
from convcore._tensor.dtypes import FLOATING
from convcore.autograd.views import write
from convcore.engine.integers import as_int
from convcore.functions._support.arguments import check_kind, number
from convcore.functions._support.errstate import ignore_errstate
from convcore.functions.elementwise.piecewise import zeros_like
from convcore.random import (
    Generator,
    bernoulli,
    count_of,
    fill_bernoulli,
    fill_normal,
    fill_random,
    fill_uniform,
    multinomial,
)

__all__: list[str] = []


def _filled(x: Tensor, name: str, fill: Callable[[np.ndarray], Any]) -> Tensor:
    """Write numbers that do not depend on what was there, so that its gradient is zero."""
    return write(x, fill, name, (x,), lambda needs, grad: zeros_like(grad))


@names_arguments
def uniform_(
    self: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill the tensor with numbers from [from_, to), all equally likely.

    Raises
    ------
    RuntimeError
        from_ is above to.
    """
    fill = lambda array: fill_uniform(array, from_, to, generator)  # noqa: E731
    return _filled(self, "UniformBackward0", fill)


@names_arguments
def normal_(
    self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill the tensor with normally distributed numbers.

    Raises
    ------
    RuntimeError
        std is negative.
    """
    fill = lambda array: fill_normal(array, mean, std, generator)  # noqa: E731
    return _filled(self, "NormalBackward0", fill)


@names_arguments
def random_(
    self: Tensor, *limits: int | None, to: int | None = None, generator: Generator | None = None
) -> Tensor:
    """Fill the tensor with integers: ``random_(from, to)`` with those from [from, to).

    ``random_(to)`` draws from [0, to), ``random_(from, None)`` up to the largest one that the dtype
    holds exactly, and ``random_()`` from 0 up to that.

    Raises
    ------
    RuntimeError
        The range is empty, or reaches beyond the dtype.
    """
    if len(limits) > 2:
        raise TypeError(f"random_() takes at most two limits, but {len(limits)} were given")
    low, high = limits if len(limits) == 2 else (0, *limits) if limits else (0, to)
    if len(limits) == 2 and high is None:
        high = count_of(self._array.dtype)
    low, high = (None if one is None else as_int(one) for one in (low, high))
    fill = lambda array: fill_random(array, low or 0, high, generator)  # noqa: E731
    return _filled(self, "RandomBackward0", fill)


@names_arguments
def bernoulli_(
    self: Tensor, p: float | Tensor = 0.5, *, generator: Generator | None = None
) -> Tensor:
    """Fill the tensor with 1 with probability p, and else 0.

    Parameters
    ----------
    p : number, or Tensor of them that broadcasts to this one

    Raises
    ------
    RuntimeError
        A probability is not from [0, 1].
    """
    chances = p._array if isinstance(p, Tensor) else number("bernoulli_", "p", p)
    kernel = "tensor_cpu_self" if isinstance(p, Tensor) else "scalar_cpu"
    check_kind(f"bernoulli_{kernel}_", self, "fiubV")
    fill = lambda array: fill_bernoulli(array, chances, generator)  # noqa: E731
    return _filled(self, "BernoulliBackward0", fill)


@names_arguments
def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill the tensor with exponentially distributed numbers, of mean 1 / lambd.

    Raises
    ------
    RuntimeError
        lambd is not above 0.

    References
    ----------
    L. Devroye, "Non-Uniform Random Variate Generation", 1986, section II.2: inversion.
    """
    lambd = number("exponential_", "lambd", lambd)
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    if self._array.dtype.kind not in FLOATING:
        raise RuntimeError(
            "Exponential distribution is a continuous probability distribution. dtype must be a "
            f"floating point but you specified {scalar_name(self._array.dtype)}"
        )
    transform = lambda u: np.log1p(-u) / -lambd  # noqa: E731
    return _filled(self, "ExponentialBackward0", _inverted(transform, generator))


@names_arguments
def cauchy_(
    self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill the tensor with Cauchy distributed numbers: median + sigma tan(pi (u - 1/2)).

    Raises
    ------
    RuntimeError
        sigma is not above 0, or the dtype is of integers.
    """
    if self._array.dtype.kind not in FLOATING:
        raise RuntimeError(
            "Cauchy distribution is a continuous probability distribution. dtype must be a "
            f"floating point but you specified {scalar_name(self._array.dtype)}"
        )
    median, sigma = number("cauchy_", "median", median), number("cauchy_", "sigma", sigma)
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    transform = lambda u: median + sigma * np.tan(np.pi * (u - 0.5))  # noqa: E731
    return _filled(self, "CauchyBackward0", _inverted(transform, generator))


def _inverted(transform: Callable, generator: Generator | None) -> Callable:
    """Return what fills an array with a transform of uniform numbers of 53 bits."""

    def fill(array: np.ndarray) -> None:
        drawn = np.empty_like(array, dtype=np.float64)
        fill_uniform(drawn, 0.0, 1.0, generator)
        array[...] = ignore_errstate(transform, drawn)

    return fill


METHODS = {
    "bernoulli": bernoulli,
    "bernoulli_": bernoulli_,
    "cauchy_": cauchy_,
    "exponential_": exponential_,
    "multinomial": multinomial,
    "normal_": normal_,
    "random_": random_,
    "uniform_": uniform_,
}
