"""The speed that a convolution is measured against: SciPy's matrix product at a size that suits it.

Direct convolution is a matrix product in disguise and cannot be faster than the best one.  Winograd
can: it does fewer multiplications than the definition, by which speed is counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import threadpoolctl

_SIZE = 2048
# Long enough for several products; the best counts, because noise only ever takes away.
_SECONDS = 0.4


def gemm_gflops(dtype: str, threads: int, size: int = _SIZE) -> float:
    """Return 1e9 operations a second of one square product, best of several.

    Parameters
    ----------
    dtype : {'float32', 'float64'}
    threads : int
        How many BLAS computes with.
    size : int
        Rows and columns of each matrix.
    """
    from scipy.linalg import blas

    product: Callable[..., Any] = {"float32": blas.sgemm, "float64": blas.dgemm}[dtype]
    generator = np.random.default_rng(0)
    a, b = (np.asfortranarray(generator.standard_normal((size, size)), dtype) for _ in range(2))
    with threadpoolctl.threadpool_limits(threads, user_api="blas"):
        seconds = _best(lambda: product(1.0, a, b))
    return 2e-9 * size**3 / seconds


def _best(call: Callable[[], Any]) -> float:
    call()
    times: list[float] = []
    while sum(times) < _SECONDS:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)
