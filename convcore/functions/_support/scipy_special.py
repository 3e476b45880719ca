"""SciPy's special functions of arrays.

They are slow to import, and few programs need one: the first call of any of them loads them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from convcore._tensor import scalar_name

__all__: list[str] = []


def of_one(name: str, kernel: str = "") -> Callable[[np.ndarray], np.ndarray]:
    """Return SciPy's function of an array, with results in the array's dtype.

    With the name of PyTorch's kernel, complex numbers are refused, which SciPy may take.
    """

    def function(array: np.ndarray) -> np.ndarray:
        if kernel and array.dtype.kind == "c":
            kind = scalar_name(array.dtype)
            raise NotImplementedError(f"\"{kernel}\" not implemented for '{kind}'")
        from scipy import special

        return np.asarray(getattr(special, name)(array), array.dtype)

    return function


def of_two(name: str) -> Any:
    """Return SciPy's function of two arrays or numbers, called like a ufunc by `compute`."""

    def function(a: Any, b: Any, out: Any, dtype: np.dtype, casting: str) -> np.ndarray:
        from scipy import special

        found = getattr(special, name)(
            *(np.asanyarray(x).astype(dtype, copy=False) for x in (a, b))
        )
        return np.asarray(found, dtype)

    return function
