"""Gradient-norm clipping: the global norm of many arrays, and scaling or clamping in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from convcore.engine.layers.images import FLOATS
from convcore.engine.layers.optimizers import _clip_grad
from convcore.engine.runtime.layout import is_dense

Array = np.ndarray[Any, Any]


def has_kernel(arrays: Sequence[Array]) -> bool:
    """Return whether the arrays are dense, writable and of the same float32 or float64 dtype."""
    return all(
        array.dtype == arrays[0].dtype
        and array.dtype in FLOATS
        and array.flags.writeable
        and is_dense(array)
        for array in arrays
    )


def global_norm(arrays: Sequence[Array]) -> float:
    """Return the 2-norm of all elements: sqrt(sum of their squares).

    Squares use the arrays' dtype and are summed in chunks that depend only on the arrays' sizes;
    the chunks' sums are float64.
    """
    largest = max((array.size for array in arrays), default=0)
    partials = np.empty(_clip_grad.n_partials(largest))
    total = sum(_clip_grad.squares(array, partials) for array in arrays)
    return float(np.sqrt(total))


def scale(array: Array, factor: float) -> None:
    """Multiply an array that has a kernel by a factor, in place."""
    _clip_grad.change(array, False, factor)


def clip(array: Array, bound: float) -> None:
    """Clamp each element of an array that has a kernel to [-bound, bound], in place; NaN stays."""
    _clip_grad.change(array, True, bound)
