"""What NumPy sorts and searches rightly."""

from __future__ import annotations

import numpy as np


def sortable(array: np.ndarray) -> np.ndarray:
    """Return an array that NumPy sorts rightly: of bfloat16, the same numbers in float32.

    A comparison of bfloat16s with NaN is false, as of any floats, but NumPy's sort does not know
    that NaN goes to the end there, and leaves the numbers beside it unsorted.
    """
    return array.astype(np.float32) if array.dtype.kind == "V" else array
