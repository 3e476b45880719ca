"""bfloat16 in files: read as it is where ml_dtypes is there, else as float32.

float32 has all of its numbers, so that nothing is lost without ml_dtypes; a warning says so.
"""

from __future__ import annotations

import warnings

import numpy as np

from convcore._tensor import dtypes


def numbers(bits: np.ndarray) -> np.ndarray | None:
    """Return bfloat16 numbers in the memory of their bits, uint16; None without ml_dtypes."""
    try:
        return bits.view(dtypes.bfloat16.numpy)
    except NotImplementedError:
        return None


def widened(halves: np.ndarray) -> np.ndarray:
    """Return the float32 of bfloat16 numbers, which are given as their bits, as uint16."""
    return (halves.astype(np.uint32) << np.uint32(16)).view(np.float32)


def say_so(stacklevel: int = 3) -> None:
    """Warn that bfloat16 of a file is read as float32, where it is."""
    if numbers(np.zeros(1, np.uint16)) is None:
        warnings.warn(
            "bfloat16 is read as float32, with the same values; as it is with ml_dtypes: "
            "pip install 'convcore[bfloat16]'",
            stacklevel=stacklevel,
        )
