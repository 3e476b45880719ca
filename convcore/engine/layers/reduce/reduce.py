"""Sums over any axes of an array, multithreaded.

In memory order, the axes form runs of summed and of kept axes.  The kernel computes sums over
images and pixels, per channel: up to four runs.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np

from convcore.engine.layers.reduce._reduce import channel_sums
from convcore.engine.runtime.casts import bits
from convcore.engine.runtime.layout import is_dense

Array = np.ndarray[Any, Any]

# NumPy sums smaller arrays over N, H, W 1.3 times as fast, and equally fast over all axes; from
# 4096 elements on the kernel is 1.1 to 3 times as fast: benchmarks/sweep.py --threads 1
# --constant engine.layers.reduce.reduce._LEAST --values 0,1000000
_LEAST = 1 << 10

_WIDER = {a: np.dtype(b) for a, b in zip("EfdFD", "dddDD", strict=True)}


def total(array: Array, over: tuple[int, ...], keepdims: bool) -> Array | None:
    """Compute the sum over axes, in float64 or complex128; return None if NumPy should do it.

    Parameters
    ----------
    array : any; large dense arrays of bfloat16, float32, float64 and complex dtypes are summed here
    over : non-negative ints
    keepdims : bool
        Whether the summed axes are kept with size 1.
    """
    kind = array.dtype.char
    if array.size < _LEAST or kind not in _WIDER or not array.dtype.isnative:
        return None
    if not is_dense(array):
        return None
    job = _job(array.shape, array.strides, over)
    if job is None:
        return None
    sizes, order, counts, strides = job
    sums = np.empty(sizes, _WIDER[kind])
    channel_sums(kind, bits(array), sums, *counts, strides)
    sums = sums.transpose(order)
    return sums if keepdims else sums.squeeze(over)


@functools.lru_cache(maxsize=256)
def _job(shape: tuple[int, ...], strides: tuple[int, ...], over: tuple[int, ...]) -> Any:
    """Return (sizes of the sums in memory order, the axes in memory order, the kernel's job)."""
    axes = sorted(range(len(shape)), key=lambda k: (-strides[k], k))
    sizes = [1 if k in over else shape[k] for k in axes]
    order = sorted(range(len(axes)), key=axes.__getitem__)
    long = [k for k in axes if shape[k] != 1]
    runs = [
        (summed, math.prod(shape[k] for k in run))
        for summed, run in itertools.groupby(long, over.__contains__)
    ]
    # The shortest pattern that contains all runs; missing axes have size 1.
    for pattern, counts in _PATTERNS.items():
        if tuple(summed for summed, _ in runs) == pattern:
            found = dict(zip(counts, (n for _, n in runs), strict=True))
            n, c, p = (found.get(name, 1) for name in ("n", "channels", "pixels"))
            last = counts[-1] == "channels"
            steps = (c * p, 1, c) if last else (c * p, p, 1)
            return tuple(sizes), tuple(order), (found.get("groups", 1), n, c, p), steps
    return None


# The kernel's names of runs of summed and kept axes.
_PATTERNS = {
    (True,): ("pixels",),
    (False, True): ("channels", "pixels"),
    (True, False): ("pixels", "channels"),
    (True, False, True): ("n", "channels", "pixels"),
    (False, True, False): ("groups", "pixels", "channels"),
    (False, True, False, True): ("groups", "n", "channels", "pixels"),
}
