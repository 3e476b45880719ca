"""Softmax and log-softmax along an axis, and their gradients, each in one pass.

    y = exp(x - m) / s or (x - m) - log(s),    m = max x,  s = sum exp(x - m)
    gx = y (gy - sum gy y) or gy - exp(y) sum gy

Results have the layout of x (or y); float16 is computed in float32.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from convcore.engine.layers.elementwise import elementwise
from convcore.engine.layers.images import FLOATS
from convcore.engine.layers.softmax import _softmax
from convcore.engine.runtime.layout import is_dense

Array = np.ndarray[Any, Any]

# Multiply-adds that take as long as one element, for the number of threads.
_WORK = 32.0


@functools.lru_cache(maxsize=256)
def _laid_out(shape: tuple[int, ...], strides: tuple[int, ...], along: int) -> tuple[int, int, int]:
    """Return the sizes before, of and after an axis of a dense array, in memory order."""
    if not shape:
        return 1, 1, 1
    order = sorted(range(len(shape)), key=lambda axis: (-strides[axis], axis))
    count, inner = shape[along], 1
    for axis in reversed(order):
        if axis == along:
            break
        inner *= shape[axis]
    return math.prod(shape) // (count * inner), count, inner


def _dense(x: Array) -> Array:
    """Return the array, or a copy, of a dtype of a kernel and without gaps in memory."""
    if x.dtype not in FLOATS:
        x = x.astype(np.float32)
    return x if is_dense(x) else np.copy(x)


def forward(x: Array, along: int, log: bool) -> Array:
    """Return softmax along an axis, or its logarithm.

    Parameters
    ----------
    x : float16, float32 or float64
    along : int
        From 0 on; of an array without axes it is taken as its only one.
    log : bool
    """
    dense = _dense(x)
    y = elementwise.empty_like(dense)
    if x.size:
        sizes = _laid_out(dense.shape, dense.strides, along)
        _softmax.softmax(dense, None, y, *sizes, log, _WORK)
    return y if y.dtype == x.dtype else y.astype(x.dtype)


def backward(grad: Array, y: Array, along: int, log: bool) -> Array:
    """Return the gradient of the input of softmax, or of its logarithm.

    Parameters
    ----------
    grad : Array of y's shape
    y : Array
        What `forward` returned.
    along, log
        As they went forward.
    """
    dense = _dense(y)
    grad_input = elementwise.empty_like(dense)
    if y.size:
        sizes = _laid_out(dense.shape, dense.strides, along)
        grad = elementwise.laid_out_like(grad, dense)
        _softmax.softmax(dense, grad, grad_input, *sizes, log, _WORK)
    return grad_input if grad_input.dtype == y.dtype else grad_input.astype(y.dtype)
