"""Layer normalization over the last axes: one mean and variance per row, one weight per element.

References
----------
J. L. Ba, J. R. Kiros, G. E. Hinton, "Layer normalization", 2016.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from convcore.engine.layers.norm._layer_norm import LayerNorm
from convcore.engine.runtime import memory

Array = np.ndarray[Any, Any]

# Minimum elements of an item, and maximum items (bounds the workspace).  On one thread 4096 to
# 65536 are within 5 % in the mean, 16 and 256 items within 2 %: benchmarks/sweep.py --threads 1
# --constant engine.layers.norm.layer_norm._LEAST_ITEM --values 4096,65536
_LEAST_ITEM = 1 << 14
_MOST_ITEMS = 64

_WORK = 8.0


@lru_cache(maxsize=1024)
def _plan(shape: tuple[int, ...], axes: int) -> tuple[Any, int, int, int]:
    """Return the kernel, and the numbers of rows, elements per row, and items."""
    length = math.prod(shape[len(shape) - axes :])
    rows = math.prod(shape[: len(shape) - axes])
    block = max(1, _LEAST_ITEM // max(1, length), math.ceil(rows / _MOST_ITEMS))
    kernel = LayerNorm({"rows": rows, "length": length, "block": block}, _WORK * rows * length)
    return kernel, rows, length, -(-rows // block)


def _contiguous(x: Array) -> Array:
    """Return an aligned C-contiguous array; copies are allocated from the memory pool."""
    if x.flags.c_contiguous and x.flags.aligned:
        return x
    copy = memory.empty(x.shape, x.dtype)
    np.copyto(copy, x)
    return copy


def _parameters(weight: Array | None, bias: Array | None, length: int, dtype: np.dtype) -> Array:
    """Return (2, length): weight and bias, or ones and zeros."""
    parameters = np.empty((2, length), dtype)
    np.copyto(parameters[0], 1 if weight is None else weight.reshape(-1))
    np.copyto(parameters[1], 0 if bias is None else bias.reshape(-1))
    return parameters


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
    kernel, rows, length, _ = _plan(x.shape, axes)
    y = memory.empty(x.shape, x.dtype)
    statistics = np.zeros((2, rows))
    if x.size:
        parameters = _parameters(weight, bias, length, x.dtype)
        kernel.run({"x": x, "y": y, "parameters": parameters, "statistics": statistics}, eps)
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
        As in the forward pass.
    statistics : Array
    """
    x, grad = _contiguous(x), _contiguous(grad)
    kernel, _, length, items = _plan(x.shape, axes)
    grad_input = memory.empty(x.shape, x.dtype)
    sums = np.zeros((2, length))
    if x.size:
        parameters = _parameters(weight, None, length, x.dtype)
        scratch = memory.take(items * sums.nbytes)
        arrays = {"gy": grad, "x": x, "gx": grad_input, "parameters": parameters}
        kernel.run(arrays | {"statistics": statistics, "sums": sums, "workspace": scratch}, eps)
        memory.give(scratch)
    shape = x.shape[x.ndim - axes :]
    grad_weight, grad_bias = (s.astype(x.dtype).reshape(shape) for s in sums)
    return grad_input, grad_weight, grad_bias
