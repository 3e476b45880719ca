"""What the tests of functions of elements draw: shapes, dtypes, numbers from a range."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

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


def few(examples: int) -> settings:
    """Return the settings of a property that is one row of a table."""
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


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
