"""Elementwise functions in tests: activations and their formulas, shapes, dtypes, numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from scipy import special

from convcore import nn
from convcore.functions.table import ROWS

# The activations of nn.functional: (name, further arguments, whether it has inplace=).
ACTIVATIONS = [
    (name, arguments, row.has_inplace) for name, row in ROWS.items() for arguments in row.cases
]
IDS = [f"{name} {[*arguments.values()]}" for name, arguments, _ in ACTIVATIONS]
LAYERS = {name.lower(): name for name in nn.__all__}


def layer_of(name):
    """Return the name of the layer of an activation: LeakyReLU of leaky_relu."""
    return LAYERS[name.replace("_", "")]


def layer_maker(name, **arguments):
    """Return the function of a library's nn that makes the layer of an activation."""
    return lambda nn: getattr(nn, layer_of(name))(**arguments)


class Exact:
    """The functions that formulas of the table call, by NumPy and SciPy."""

    def __getattr__(self, name):
        return getattr(np, name)

    def softplus(self, x):
        return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))

    def sigmoid(self, x):
        return np.where(x > 0, 1, np.exp(-np.abs(x))) / (1 + np.exp(-np.abs(x)))

    def erf(self, x):
        return special.erf(x.astype("f8"))

    def hardsigmoid(self, x):
        return ROWS["hardsigmoid"].formula(self, x)


EXACT = Exact()

# Beside PyTorch: both round, in an order of their own.
TOLERANCE = {
    "float16": 5e-2,
    "float32": 3e-4,
    "float64": 1e-9,
    "complex64": 3e-3,
    "complex128": 1e-8,
}
REAL = ["float16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
INTEGER = ["uint8", "int8", "int16", "int32", "int64"]

SHAPES = st.sampled_from([(), (1,), (4,), (2, 3), (3, 1, 2), (0, 2), (2, 3, 2, 2)])
SEEDS = st.integers(0, 2**32 - 1)


def drawn(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: str, low: float, high: float
) -> np.ndarray:
    """Draw an array; of a complex dtype, with the imaginary part from the same range."""
    values = rng.uniform(low, high, shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.uniform(low, high, shape)
    return np.asarray(values, dtype)


def broadcast_pair(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: str, low: float, high: float
) -> tuple[np.ndarray, np.ndarray]:
    """Draw two arrays that broadcast to a shape."""
    arrays = []
    for _ in range(2):
        own = tuple(size if size == 0 or rng.random() < 0.8 else 1 for size in shape)
        cut = rng.integers(0, len(own) + 1) if rng.random() < 0.2 else 0
        arrays.append(drawn(rng, own[cut:], dtype, low, high))
    return arrays[0], arrays[1]
