"""The epilogue of a convolution: activations that its kernels apply while outputs are in cache.

There are two formulas: a clamp to [low, high] (ReLU, ReLU6) and a slope for what is negative
(LeakyReLU).  A NaN stays a NaN in both.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np

Activation = str | tuple[str, float] | None

# As in engine/conv/arguments.h.
CLAMP, LEAKY = 1, 2

_ALLOWED = "None, 'relu', 'relu6' or ('leaky_relu', slope)"


def activation_parameters(
    activation: Activation, dtype: np.dtype[Any]
) -> tuple[int, float, float, float] | tuple[()]:
    """Return (kind, low, high, slope) as kernels take them, or nothing for no activation.

    Raises
    ------
    TypeError, ValueError
        No activation of those above, or one of complex numbers.
    """
    if activation is None:
        return ()
    if dtype.kind != "f":
        raise TypeError(
            f"activation {activation!r} needs real floating-point numbers, got {dtype.name}"
        )
    match activation:
        case "relu":
            return CLAMP, 0.0, math.inf, 0.0
        case "relu6":
            return CLAMP, 0.0, 6.0, 0.0
        case ("leaky_relu", slope) if isinstance(slope, Real) and not isinstance(slope, bool):
            return LEAKY, 0.0, 0.0, float(slope)
    raise ValueError(f"activation must be {_ALLOWED}, got {activation!r}")
