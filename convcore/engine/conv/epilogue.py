"""Epilogue of a convolution: activations that kernels apply while outputs are in cache.

Two formulas: a clamp to [low, high] (ReLU, ReLU6) and a slope for negative values (LeakyReLU).
NaN stays NaN in both.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np

Activation = str | tuple[str, float] | None

# Values of the enum in engine/conv/arguments.h.
CLAMP, LEAKY = 1, 2

_ALLOWED = "None, 'relu', 'relu6' or ('leaky_relu', slope)"


def activation_parameters(
    activation: Activation, dtype: np.dtype[Any]
) -> tuple[int, float, float, float] | tuple[()]:
    """Return (kind, low, high, slope) of an activation as kernels take them; () for None.

    Raises
    ------
    TypeError, ValueError
        activation is not one of the above, or dtype is complex.
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
