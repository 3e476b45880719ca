"""bfloat16 in files: read as float32, which has all of its numbers.

On every machine alike, be ml_dtypes there or not: what a program gets must not depend on it, and
convolutions compute in float32 anyway.  `load_state_dict` casts to what a module has.
"""

from __future__ import annotations

import warnings

import numpy as np


def widened(halves: np.ndarray) -> np.ndarray:
    """Return the float32 of bfloat16 numbers, which are given as their bits, as uint16."""
    return (halves.astype(np.uint32) << np.uint32(16)).view(np.float32)


def say_so(stacklevel: int = 3) -> None:
    """Warn that there is bfloat16 in a file."""
    warnings.warn("bfloat16 is read as float32, with the same values", stacklevel=stacklevel)
