"""The memory pool for results and scratch, and its statistics and limits.

The system finds and clears a page when it is first written, which often takes longer than a
convolution takes to fill it: arrays in the memory of the last step are filled 3 to 13 times faster
(``python benchmarks/reuse.py``).  So large arrays lie in blocks of our own
(engine/runtime/_memory.pyx), which return to a pool when the last view of them dies.

Scratch is a block too.  A few blocks stay between calls, whatever the sizes asked for, so that the
layers of a net work in one piece of memory, which stays in cache.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Sequence

import numpy as np

from convcore.engine.geometry import index
from convcore.engine.runtime import _memory
from convcore.engine.runtime._memory import Block
from convcore.engine.runtime.cpus import memory_bytes

# Smaller arrays are NumPy's own: a block costs 0.35 us more than they do, and saves up to 30 us of
# faults at this size (``python benchmarks/reuse.py``).
LEAST_BYTES = 1 << 16
_MOST_BYTES = sys.maxsize >> 1

# Scratch that stays between calls: so many blocks, of at most so many bytes each.
MOST_SCRATCH = 4
MOST_SCRATCH_BYTES = 64 << 20

_scratch: list[Block] = []


def empty(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """Return a new C-contiguous array, not cleared; a large one lies in a block of the pool.

    Raises
    ------
    MemoryError
        If the memory cannot be had.
    """
    n_bytes = math.prod(shape) * dtype.itemsize
    if not LEAST_BYTES <= n_bytes <= _MOST_BYTES:
        return np.empty(shape, dtype)  # which has its own words for what is too large
    return np.ndarray(shape, dtype, Block(n_bytes))


def take(n_bytes: int) -> Block:
    """Return a block of at least ``n_bytes`` bytes for scratch, not cleared.

    Raises
    ------
    MemoryError
        If the memory cannot be had.
    """
    try:
        block = _scratch.pop()  # atomic, so no two calls get one block
    except IndexError:
        pass
    else:
        if len(block) >= n_bytes:
            return block
    return Block(max(n_bytes, LEAST_BYTES))


def give(block: Block) -> None:
    """Give scratch back after use."""
    if len(_scratch) < MOST_SCRATCH and len(block) <= MOST_SCRATCH_BYTES:
        _scratch.append(block)


def empty_cache() -> None:
    """Return to the system all pooled memory that no array uses.

    From then on the pool keeps less, too: it learns anew how much is used.

    Examples
    --------
    >>> import convcore
    >>> convcore.empty_cache()
    >>> stats = convcore.memory_stats()
    >>> stats["reserved_bytes.current"] - stats["allocated_bytes.current"]
    0
    """
    _scratch.clear()
    _memory.release()


def memory_stats() -> dict[str, int]:
    """Return statistics of the memory pool: bytes that arrays use, and bytes of the system.

    Returns
    -------
    dict of str to int
        ``allocated_bytes.current``, ``.peak``: bytes in use, by arrays of 64 KiB and more and by
        scratch; up to four blocks of scratch, of 64 MiB at most, stay in use between calls.

        ``reserved_bytes.current``, ``.peak``: bytes in use, and bytes kept for the next arrays.

        ``allocation.current``, ``allocation.allocated``: blocks in use; blocks made since the
        start.

        ``segment.allocated``: how often memory was asked of the system since the start. In a loop
        whose steps are alike it soon stands still.

    Notes
    -----
    What is kept is counted in the process's memory by its system. It is never more than was in use
    at once at some time since the start, less what is in use now, and never more than
    `get_cache_limit`. Beyond that, what was not used for longest goes back to the system.

    An array takes up to an eighth more than its elements. NumPy's own arrays are not counted: those
    below 64 KiB, those that a program brings, and the results of operations that allocate through
    NumPy.

    Examples
    --------
    >>> import convcore
    >>> y = convcore.nn.functional.conv2d(convcore.ones(1, 16, 64, 64), convcore.ones(16, 16, 3, 3))
    >>> stats = convcore.memory_stats()
    >>> stats["reserved_bytes.current"] >= stats["allocated_bytes.current"] >= y.nbytes
    True
    """
    counts = _memory.get_counts()
    return {
        "allocated_bytes.current": counts["used"],
        "allocated_bytes.peak": counts["peak_used"],
        "reserved_bytes.current": counts["reserved"],
        "reserved_bytes.peak": counts["peak_reserved"],
        "allocation.current": counts["blocks"],
        "allocation.allocated": counts["taken"],
        "segment.allocated": counts["mapped"],
    }


def reset_peak_memory_stats() -> None:
    """Reset the peaks of `memory_stats` to the present values.

    Examples
    --------
    >>> import convcore
    >>> convcore.reset_peak_memory_stats()
    >>> stats = convcore.memory_stats()
    >>> stats["reserved_bytes.peak"] == stats["reserved_bytes.current"]
    True
    """
    _memory.reset_peaks()


def set_cache_limit(n_bytes: int) -> None:
    """Set how many bytes that no array uses are kept at most; 0 keeps none.

    What is kept beyond that goes back to the system at once. At first the limit is a quarter of the
    machine's memory.

    Raises
    ------
    TypeError, ValueError
        n_bytes is no int, or negative.

    Examples
    --------
    >>> import convcore
    >>> before = convcore.get_cache_limit()
    >>> convcore.set_cache_limit(256 << 20)
    >>> convcore.get_cache_limit()
    268435456
    >>> convcore.set_cache_limit(before)
    """
    if isinstance(n_bytes, bool):
        raise TypeError("n_bytes must be an int, got bool")
    n_bytes = index("n_bytes", n_bytes)
    if n_bytes < 0:
        raise ValueError(f"n_bytes must not be negative, got {n_bytes}")
    _memory.set_limit(min(n_bytes, _MOST_BYTES))


def get_cache_limit() -> int:
    """Return how many bytes that no array uses are kept at most."""
    return _memory.get_limit()


# A quarter of the memory that the machine or the container has.
_memory.set_limit((memory_bytes() or 4 << 30) // 4)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_memory.after_fork)
