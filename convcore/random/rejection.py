"""Gamma and Poisson numbers, drawn one by one until one is accepted.

References
----------
G. Marsaglia and W. W. Tsang, "A simple method for generating gamma variables", ACM TOMS 26(3),
2000.
W. Hormann, "The transformed rejection method for generating Poisson random variables", Insurance:
Mathematics and Economics 12(1), 1993, algorithm PTRS.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore._tensor.creation.arguments import check_tensor
from convcore.engine.runtime.errstate import quiet
from convcore.random.fill import check_floating
from convcore.random.generator import Generator, resolve

__all__ = ["poisson"]


class _Draws:
    """Single numbers of a generator, whose lock is held."""

    def __init__(self, generator: Generator):
        self._generator = generator
        self._word = generator._words.random_raw

    def uniform(self) -> float:
        """Draw from [0, 1) with 53 bits of two words."""
        return ((self._word() << 32 | self._word()) & (1 << 53) - 1) * 2.0**-53

    def normal(self) -> float:
        """Draw by Box and Muller, of whose pairs the second number is kept for the next call."""
        generator = self._generator
        if generator._spare is not None:
            spare, generator._spare = generator._spare, None
            return spare
        angle, radius = 2 * math.pi * self.uniform(), math.sqrt(-2 * math.log1p(-self.uniform()))
        generator._spare = radius * math.sin(angle)
        return radius * math.cos(angle)


def draw_each(
    one: Callable, generator: Generator | None, dtype: np.dtype, *parameters: np.ndarray
) -> np.ndarray:
    """Return ``one(draws, *numbers)`` for the numbers of each element, in C order."""
    source = resolve(generator)
    rows = np.broadcast_arrays(*parameters)
    out = np.empty(rows[0].shape, dtype)
    columns = [row.astype(np.float64).reshape(-1).tolist() for row in rows]
    with source._lock:
        draws = _Draws(source)
        out.reshape(-1)[...] = [one(draws, *numbers) for numbers in zip(*columns, strict=True)]
    return out


# In float32, as PyTorch has it: in float64 samples would differ in the eighth digit.
_THIRD = float(np.float32(1 / 3))


def gamma_number(draws: _Draws, alpha: float) -> float:
    """Draw from the gamma distribution of shape ``alpha`` and rate 1."""
    scale = 1.0
    if alpha < 1:
        if alpha == 0:
            return 0.0
        scale = (1 - draws.uniform()) ** (1 / alpha)
        alpha += 1
    d = alpha - _THIRD
    c = 1 / math.sqrt(9 * d)
    while True:
        y = 0.0
        while y <= 0:
            x = draws.normal()
            y = 1 + c * x
        v, u, square = y**3, 1 - draws.uniform(), x * x
        if u < 1 - 0.0331 * square * square:
            return scale * d * v
        if math.log(u) < 0.5 * square + d * (1 - v + math.log(v)):
            return scale * d * v


def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Draw a Poisson number for each element, which is its mean.

    Raises
    ------
    RuntimeError
        A mean is negative.
    NotImplementedError
        The tensor is not of a floating-point dtype.
    """
    check_tensor("poisson", "input", input)
    means = input._array
    check_floating("poisson_cpu", means)
    if not quiet(np.greater_equal, means, 0).all():  # NaN in bfloat16 warns
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    return wrap(draw_each(_poisson_number, generator, means.dtype, means))


def _poisson_number(draws: _Draws, mean: float) -> float:
    if mean >= 10:
        return _poisson_by_rejection(draws, mean)
    if mean == 0:
        return 0
    least, count, product = math.exp(-mean), -1, 1.0
    while product > least:
        product *= draws.uniform()
        count += 1
    return count


def _poisson_by_rejection(draws: _Draws, mean: float) -> float:
    if math.isinf(mean):
        return mean
    b = 0.931 + 2.53 * math.sqrt(mean)
    a = -0.059 + 0.02483 * b
    inverse_alpha, v_r = 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2)
    while True:
        u, v = draws.uniform() - 0.5, draws.uniform()
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + mean + 0.43)
        if us >= 0.07 and v <= v_r:
            return k
        if k < 0 or (us < 0.013 and v > us):
            continue
        height = _log(v) + math.log(inverse_alpha) - math.log(a / (us * us) + b)
        if height <= -mean + k * math.log(mean) - math.lgamma(k + 1):
            return k


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf
