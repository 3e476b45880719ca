"""Scratch memory, kept between calls so that it does not fault in fresh pages every time.

A call takes one block and gives it back.  Blocks that were given back are handed out again, most
recent first; at most `MOST_KEPT` of them and never one above `MOST_BYTES` are kept.
"""

from __future__ import annotations

import numpy as np

MOST_KEPT = 4
MOST_BYTES = 64 << 20
ALIGNMENT = 64

_kept: list[np.ndarray] = []


def take(n_bytes: int) -> np.ndarray:
    """Return a block of at least ``n_bytes`` bytes (uint8, cache-line aligned, not cleared).

    Raises
    ------
    MemoryError
        If the memory cannot be had.
    """
    try:
        block = _kept.pop()  # atomic, so no two calls get one block
    except IndexError:
        pass
    else:
        if block.nbytes >= n_bytes:
            return block
    n_bytes = max(n_bytes, 1 << 16)
    memory = np.empty(n_bytes + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + n_bytes]


def give(block: np.ndarray) -> None:
    """Give a block back after use."""
    if len(_kept) < MOST_KEPT and block.nbytes <= MOST_BYTES:
        _kept.append(block)


def empty_cache() -> None:
    """Release the scratch memory that is kept between calls.

    Examples
    --------
    >>> import convcore
    >>> convcore.engine.empty_cache()
    """
    _kept.clear()
