"""Whether a net does the same in two ways, seen by running both.

The graph of gradients does not show everything: what was detached, changed out of its sight, kept
in lists of one's own or read from a layer's weights.  So nothing is believed before it was tried.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore.engine.runtime import layout
from convcore.engine.runtime.checks import Array
from convcore.inference.trace import tensors_of

# How far results may be apart, as a part of the largest: far above rounding, far below a mistake.
_TOLERANCE = 1e-3


def agree(results: Any, others: Any) -> bool:
    """Return whether nested results are the same, to rounding; integers to their shapes."""
    a, b = (tuple(one._array for one in tensors_of(some)) for some in (results, others))
    return len(a) == len(b) and all(map(_alike, a, b))


def _alike(a: Array, b: Array) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    # Integers are positions of largest elements and the like, which rounding changes.
    if a.dtype.kind not in "fc" or not a.size:
        return True
    finite = np.abs(a[np.isfinite(a)])
    return np.allclose(a, b, rtol=0, atol=_TOLERANCE * finite.max(initial=0), equal_nan=True)


def copy_of(input: Tensor) -> Tensor:
    """Return a copy to try a net on; random where all elements are the same, as in zeros."""
    return _filled_like(input, input._array)


def other_like(input: Tensor) -> Tensor:
    """Return another input that lies in the same memory format: the same elements, reversed."""
    return _filled_like(input, np.flip(input._array))


def _filled_like(input: Tensor, elements: Array) -> Tensor:
    array = input._array
    last = layout.is_channels_last(array.shape, array.strides)
    made = layout.empty(array.shape, array.dtype, last)
    if array.dtype.kind == "f" and array.size and array.min() == array.max():
        # Of elements that are all alike nothing would show that a mask or a gate is stale.
        elements = np.random.default_rng(0).random(array.shape)
    made[...] = elements
    return wrap(made)
