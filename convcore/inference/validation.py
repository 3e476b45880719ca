"""Compare a net's results before and after optimization, by running both.

The autograd graph does not show everything that a net does: tensors that were detached or changed
through NumPy, stored in Python lists, or computed from a layer's weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore.engine.conv.selection import current
from convcore.engine.runtime import layout
from convcore.engine.runtime.checks import Array
from convcore.nn.modules.utils import nested_tensors

# Largest difference, relative to the largest element: far above rounding, far below a mistake; and
# where products are in bfloat16, whose eps is 2^-7, and small differences are rounded apart.
_TOLERANCE, _BFLOAT16_TOLERANCE = 1e-3, 5e-2


def agree(results: Any, others: Any) -> bool:
    """Return whether nested results are equal up to rounding; of integers shapes are compared."""
    coarse = "bf16" in (current().precision, current().matmul)
    tolerance = _BFLOAT16_TOLERANCE if coarse else _TOLERANCE
    a, b = (tuple(one._array for one in nested_tensors(some)) for some in (results, others))
    return len(a) == len(b) and all(_alike(*pair, tolerance) for pair in zip(a, b, strict=True))


def differences(results: Any, others: Any) -> tuple[float, float]:
    """Return how far nested results lie apart at most and on average.

    Over the largest element of each tensor, where that is not 0; of several tensors the worst
    counts.
    """
    pairs = zip(nested_tensors(results), nested_tensors(others), strict=True)
    arrays = [(a._array, b._array) for a, b in pairs if a._array.dtype.kind == "f" and a.numel()]
    apart = [np.abs(a - b) / (np.abs(a).max() or 1) for a, b in arrays]
    return (
        max((float(one.max()) for one in apart), default=0.0),
        max((float(one.mean()) for one in apart), default=0.0),
    )


def _alike(a: Array, b: Array, tolerance: float) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    # Integers are indices of maxima and the like, which rounding may change.
    if a.dtype.kind not in "fc" or not a.size:
        return True
    finite = np.abs(a[np.isfinite(a)])
    return np.allclose(a, b, rtol=0, atol=tolerance * finite.max(initial=0), equal_nan=True)


def copy_of(input: Tensor) -> Tensor:
    """Return a copy of an input; of random numbers if all its elements are equal, as in zeros."""
    return _filled_like(input, input._array)


def other_like(input: Tensor) -> Tensor:
    """Return another input in the same memory format: the same elements, reversed."""
    return _filled_like(input, np.flip(input._array))


def _filled_like(input: Tensor, elements: Array) -> Tensor:
    array = input._array
    last = layout.is_channels_last(array.shape, array.strides)
    made = layout.empty(array.shape, array.dtype, last)
    if array.dtype.kind == "f" and array.size and array.min() == array.max():
        # Equal elements would not reveal that a mask or a gate is stale.
        elements = np.random.default_rng(0).random(array.shape)
    made[...] = elements
    return wrap(made)
