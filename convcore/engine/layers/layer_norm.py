"""Normalisation over the last axes: each row by its own mean and variance, a weight an element.

References
----------
J. L. Ba, J. R. Kiros, G. E. Hinton, "Layer normalization", 2016.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from convcore.engine.runtime import memory
from convcore.kernels.layers import _layer_norm

Array = np.ndarray[Any, Any]

# Elements of an item, and the most items, which bounds the workspace; chosen by hand.
_LEAST_ITEM = 1 << 14
_MOST_ITEMS = 64

_WORK = 8.0


def _job(x: Array, axes: int, eps: float) -> dict[str, Any]:
    length = math.prod(x.shape[x.ndim - axes :])
    rows = math.prod(x.shape[: x.ndim - axes])
    block = max(1, _LEAST_ITEM // max(1, length), math.ceil(rows / _MOST_ITEMS))
    return {"rows": rows, "length": length, "block": block, "eps": eps, "work": _WORK * x.size}


def _contiguous(x: Array) -> Array:
    """Return an aligned C-contiguous array; a copy lies in the pool's memory."""
    if x.flags.c_contiguous and x.flags.aligned:
        return x
    copy = memory.empty(x.shape, x.dtype)
    copy[...] = x
    return copy


def _weights(weight: Array | None, bias: Array | None, length: int, dtype: np.dtype) -> Array:
    """Return (2, length): weight and bias, or ones and zeros."""
    terms = np.empty((2, length), dtype)
    terms[0] = 1 if weight is None else weight.reshape(-1)
    terms[1] = 0 if bias is None else bias.reshape(-1)
    return terms


def forward(
    x: Array, weight: Array | None, bias: Array | None, eps: float, axes: int
) -> tuple[Array, Array]:
    """Normalise over the last ``axes`` axes.

    Parameters
    ----------
    x : float32 or float64
    weight, bias : of the shape of those axes, the same dtype, or None
    eps : float
        Added to variances.
    axes : int

    Returns
    -------
    y : Array
        Of x's shape, contiguous.
    statistics : (2, rows), float64
        Means and variances.
    """
    x = _contiguous(x)
    job = _job(x, axes, eps)
    y = memory.empty(x.shape, x.dtype)
    statistics = np.zeros((2, job["rows"]))
    if x.size:
        terms = _weights(weight, bias, job["length"], x.dtype)
        _layer_norm.forward(job, x, y, terms, statistics)
    return y, statistics


def backward(
    grad: Array, x: Array, weight: Array | None, eps: float, axes: int, statistics: Array
) -> tuple[Array, Array, Array]:
    """Return the gradients of input, weight and bias.

    Parameters
    ----------
    grad : Array of x's shape
    x, weight, eps, axes
        As they went forward.
    statistics : Array
        What `forward` returned.
    """
    x, grad = _contiguous(x), _contiguous(grad)
    job = _job(x, axes, eps)
    grad_input = memory.empty(x.shape, x.dtype)
    items = -(-job["rows"] // job["block"])
    sums = np.zeros((2, job["length"]))
    if x.size:
        terms = _weights(weight, None, job["length"], x.dtype)
        scratch = memory.take(items * sums.nbytes)
        _layer_norm.backward(job, grad, x, grad_input, terms, statistics, sums, scratch)
        memory.give(scratch)
    shape = x.shape[x.ndim - axes :]
    return grad_input, *(s.astype(x.dtype).reshape(shape) for s in sums)
