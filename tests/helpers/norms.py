"""What the tests of normalisations draw: dtypes, layouts of memory, numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

# The second order of float32 has the largest sums; its terms cancel.
TOLERANCE = {"float32": 2e-3, "float64": 1e-8}
DTYPES = st.sampled_from(["float32", "float64"])
FORMATS = st.sampled_from(["contiguous", "channels_last", "strided"])


def laid_out(array: np.ndarray, form: str) -> np.ndarray:
    """Return the array in another layout of memory."""
    if form == "channels_last" and array.ndim > 2:
        return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1)
    if form == "strided":
        return np.repeat(array, 2, axis=-1)[..., ::2]
    return array


def numbers(
    rng: np.random.Generator, dtype: str, *shapes: int | tuple[int, ...]
) -> list[np.ndarray]:
    """Draw arrays of normal numbers about 0.5."""
    return [np.asarray(rng.normal(0.5, 1.5, shape), dtype) for shape in shapes]
