"""The machine's speed in matrix products, which a profile's speeds are compared with."""

from __future__ import annotations

from time import perf_counter

from convcore._tensor.creation import ones
from convcore.autograd.grad_mode import no_grad
from convcore.functions.products.matmul import mm

_SIZE = 1024
_SECONDS = 0.1


def peak_gflops() -> float:
    """Return the best speed of several float32 matrix products, in 1e9 operations a second.

    They are computed on as many threads as are set. A multiply-add is two operations. Winograd
    convolutions may be faster than this: they do fewer multiplications than the definition.
    """
    with no_grad():
        a = ones((_SIZE, _SIZE))
        mm(a, a)
        best, spent = float("inf"), 0.0
        while spent < _SECONDS:
            start = perf_counter()
            mm(a, a)
            taken = perf_counter() - start
            best, spent = min(best, taken), spent + taken
    return 2e-9 * _SIZE**3 / best
