"""Where functions of each element leave NumPy for the kernels: arrays that suit them.

A kernel is named in a tuple, with the function's constants behind the name: ("leaky_relu", 0.1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore.autograd.grad_mode import mode
from convcore.engine.layers import elementwise
from convcore.functions._support.errstate import ignore_errstate

__all__: list[str] = []

Kernel = tuple[Any, ...]


def value_of(kernel: Kernel, function: Callable, array: np.ndarray) -> Any:
    """Return the kernel of an array that suits it, or ``function(array)``."""
    if kernel and elementwise.has_kernel(kernel[0], array):
        return elementwise.forward(kernel[0], array, kernel[1:])
    return ignore_errstate(function, array)


def gradient_of(kernel: Kernel, backward: Callable) -> Callable:
    """Return a backward that has the kernel compute what is not to be differentiated again.

    ``backward(needs, grad, kept)`` has one tensor saved: what the kernel's gradient is told from.
    """

    def large(needs: tuple[bool, ...], grad: Tensor, kept: Tensor) -> Tensor:
        if not mode.enabled and elementwise.has_kernel(kernel[0], grad._array, kept._array):
            return wrap(elementwise.gradient(kernel[0], grad._array, kept._array, kernel[1:]))
        return backward(needs, grad, kept)

    return large if kernel else backward


def pairwise(kernel: str, ufunc: np.ufunc, a: np.ndarray, b: np.ndarray) -> Any:
    """Return the sum or product of two arrays of one shape and dtype."""
    if elementwise.has_kernel(kernel, a, b):
        return elementwise.gradient(kernel, a, b)
    return ignore_errstate(ufunc, a, b)
