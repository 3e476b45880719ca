"""Elementwise functions in tests: activations and their formulas, shapes, dtypes, numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from scipy import special

# The activations of nn.functional: (name, further arguments, whether it has inplace=).
ACTIVATIONS = [
    ("celu", {"alpha": 0.7}, True),
    ("elu", {"alpha": 0.7}, True),
    ("gelu", {}, False),
    ("gelu", {"approximate": "tanh"}, False),
    ("hardshrink", {"lambd": 0.6}, False),
    ("hardsigmoid", {}, True),
    ("hardswish", {}, True),
    ("hardtanh", {"min_val": -0.7, "max_val": 1.2}, True),
    ("leaky_relu", {"negative_slope": 0.2}, True),
    ("leaky_relu", {"negative_slope": 1.5}, True),
    ("leaky_relu", {"negative_slope": 0.0}, True),
    ("logsigmoid", {}, False),
    ("mish", {}, True),
    ("relu", {}, True),
    ("relu6", {}, True),
    ("selu", {}, True),
    ("silu", {}, True),
    ("softplus", {}, False),
    ("softplus", {"beta": 2.0, "threshold": 3.0}, False),
    ("softshrink", {"lambd": 0.6}, False),
    ("softsign", {}, False),
    ("tanhshrink", {}, False),
    ("threshold", {"threshold": 0.3, "value": 5.0}, True),
]
IDS = [f"{name} {[*arguments.values()]}" for name, arguments, _ in ACTIVATIONS]


def soft(z):
    """Return log(1 + exp(z))."""
    return np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z)))


def sixth(x):
    return np.clip(x + 3, 0, 6) / 6


# The oracle of the compiled ops of one array, by their names in engine/layers/elementwise/ops.h.
FORMULAS = {
    "relu": lambda x: np.where(x < 0, 0, x),
    "clamp": lambda x, low, high: np.clip(x, low, high),
    "leaky_relu": lambda x, slope: np.where(x > 0, x, x * slope),
    "hardsigmoid": sixth,
    "hardswish": lambda x: x * sixth(x),
    "hardshrink": lambda x, edge: np.where(np.abs(x) <= edge, 0, x),
    "softshrink": lambda x, edge: x - np.clip(x, -edge, edge),
    "threshold": lambda x, edge, value: np.where(x <= edge, value, x),
    "sigmoid": lambda x: np.where(x > 0, 1, np.exp(-np.abs(x))) / (1 + np.exp(-np.abs(x))),
    "tanh": np.tanh,
    "silu": lambda x: x * np.exp(-soft(-x)),
    "elu": lambda x, a, b, c: np.where(x > 0, x * b, np.expm1(np.minimum(x, 0) * c) * a),
    "softplus": lambda x, beta, edge: np.where(x * beta > edge, x, soft(x * beta) / beta),
    "logsigmoid": lambda x: -soft(-x),
    "mish": lambda x: x * np.tanh(soft(x)),
    "gelu": lambda x: x * special.ndtr(x.astype("f8")),
    "gelu_tanh": lambda x: x * (np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)) + 1) / 2,
}

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
