"""Negative log likelihood of classes (NLL loss), and its gradient: one pass each, sums in float64.

    loss = -weight[k] x[k] of each pixel's class k, or their sum,    total = sum weight[k]

x is (N, C), (C,) or (N, C, d1, ...), contiguous or NHWC (classes last), and its gradient has the
same layout.  Pixels of class ``ignore`` are skipped; ``smoothing``, in [0, 1], is the share of the
target spread over all classes, each with its weight; float16 is computed in float32.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from convcore.engine.layers.images import FLOATS
from convcore.engine.layers.softmax import _nll
from convcore.engine.runtime import memory
from convcore.engine.runtime.checks import plain

Array = np.ndarray[Any, Any]

# Multiply-adds that take as long as one pixel; its gradient also zeroes one value per class.
_WORK = 64.0


def class_axis(shape: tuple[int, ...]) -> int:
    """Return the index of the class axis of a shape."""
    return 1 if len(shape) > 1 else 0


def is_nhwc(x: Array) -> bool:
    """Return whether a dense array of images has its classes last in memory, not second."""
    if x.ndim <= 2 or x.flags.c_contiguous:
        return False
    return x.transpose(0, *range(2, x.ndim), 1).flags.c_contiguous


def _sizes(shape: tuple[int, ...], nhwc: bool) -> tuple[int, int, int, bool]:
    """Return (images, classes, pixels, whether the classes are last in memory).

    If they are last, images and rows are counted as pixels.
    """
    axis = class_axis(shape)
    c = shape[axis]
    if nhwc or len(shape) <= 2:
        return 1, c, math.prod(shape[:axis] + shape[axis + 1 :]), True
    return shape[0], c, math.prod(shape[2:]), False


def _prepared(array: Array, dtype: np.dtype) -> Array:
    array = np.asarray(plain(array), dtype, order="C")
    return array if array.flags.aligned else array.copy()


def forward(
    x: Array, classes: Array, weight: Array | None, ignore: int, each: bool, smoothing: float = 0.0
) -> tuple[Array | float, float]:
    """Return the losses if ``each``, else their sum, and the sum of their weights.

    Parameters
    ----------
    x : float16, float32 or float64
    classes : int64, (N, d1, ...)
    weight : (C,) or None for ones
    ignore : int
    each : bool
    smoothing : float

    Raises
    ------
    IndexError
        A class that is not ignored is not in [0, C).
    """
    nhwc = is_nhwc(x)
    dtype = x.dtype if x.dtype in FLOATS else FLOATS[0]
    if x.dtype != dtype or not (nhwc or x.flags.c_contiguous) or not x.flags.aligned:
        x, nhwc = _prepared(x, dtype), False
    n, c, pixels, nhwc = _sizes(x.shape, nhwc)
    classes = _prepared(classes, np.dtype(np.int64))
    if weight is not None:
        weight = _prepared(weight, dtype)
    losses = memory.empty(classes.shape, dtype) if each else None
    loss = total = wrong = 0.0
    if classes.size:
        sums = np.empty(3 * _nll.items_of(n, pixels))
        loss, total, wrong = _nll.forward(
            *(x, classes, weight, losses, sums, n, c, pixels, nhwc, ignore, smoothing),
            _WORK + c * (smoothing > 0),
        )
    if wrong:
        others = classes[(classes != ignore) & ((classes < 0) | (classes >= c))]
        raise IndexError(f"Target {others[0]} is out of bounds.")
    return loss if losses is None else losses, total


def backward(
    grad: Array,
    total: float,
    like: tuple[tuple[int, ...], np.dtype, bool],
    classes: Array,
    weight: Array | None,
    ignore: int,
    smoothing: float = 0.0,
) -> Array:
    """Compute the gradient of the log-probabilities x.

    Parameters
    ----------
    grad : Array
        The gradient of each loss, or a 0-d array: the gradient of all.
    total : float
        The divisor of the losses.
    like : (shape, dtype, `is_nhwc`) of x
    classes, weight, ignore, smoothing
        As in the forward pass.
    """
    shape, dtype, nhwc = like
    kernel = dtype if dtype in FLOATS else FLOATS[0]
    out = _empty(shape, kernel, nhwc)
    classes = _prepared(classes, np.dtype(np.int64))
    if weight is not None:
        weight = _prepared(weight, kernel)
    grads, one = (_prepared(grad, kernel), 1.0) if grad.ndim else (None, float(grad))
    if out.size:
        n, c, pixels, nhwc = _sizes(shape, nhwc)
        _nll.gradient(
            *(out, classes, weight, grads, one, total, n, c, pixels, nhwc, ignore, smoothing),
            _WORK + c,
        )
    return out if kernel == dtype else out.astype(dtype)


def _empty(shape: tuple[int, ...], dtype: np.dtype, nhwc: bool) -> Array:
    if not nhwc:
        return memory.empty(shape, dtype)
    out = memory.empty((shape[0], *shape[2:], shape[1]), dtype)
    return out.transpose(0, len(shape) - 1, *range(1, len(shape) - 1))
