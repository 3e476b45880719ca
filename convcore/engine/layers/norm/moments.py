"""Moments of an array: mean, variance, minimum, maximum, zero and NaN counts in one pass."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from convcore.engine.layers.images import FLOATS
from convcore.engine.layers.norm import _moments


class Moments(NamedTuple):
    """Mean, variance, minimum, maximum and counts of all elements; NaN for an empty array.

    ``variance`` is the population variance; ``least`` and ``largest`` are NaN if an element is.
    """

    size: int
    mean: float
    variance: float
    least: float
    largest: float
    zeros: int
    nan: int


def moments(array: np.ndarray[Any, Any]) -> Moments:
    """Compute the moments of an array of real numbers, in any order of axes.

    Runs of 8192 elements are summed in the array's dtype and merged in float64.
    """
    if array.dtype not in FLOATS:
        array = array.astype(np.float64 if array.dtype.kind in "iu" else np.float32)
    flat = array.ravel("K")
    if flat.size == 0:
        return Moments(0, math.nan, math.nan, math.nan, math.nan, 0, 0)
    found = _moments.moments_of(flat, np.empty(_moments.n_partials(flat.size)))
    size, mean, squares, least, largest, zeros, nan = found
    if nan:
        least = largest = math.nan
    return Moments(flat.size, mean, squares / size, least, largest, int(zeros), int(nan))
