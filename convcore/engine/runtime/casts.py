"""Casts between float32 and bfloat16, which is float32's upper half, on all threads.

Widening is exact; narrowing rounds to nearest, ties to even, and keeps NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore.engine.runtime import _casts, memory
from convcore.engine.runtime.layout import is_dense

Array = np.ndarray[Any, Any]

# Fewer elements are not worth the call: ml_dtypes' loops take 1 to 2 ns an element.
_LEAST = 1 << 10


def bits(array: Array) -> Array:
    """Return a view of a bfloat16 array as uint16, which buffers can hold; others as they are."""
    return array.view(np.uint16) if array.dtype.char == "E" else array


def astype(array: Array, dtype: np.dtype) -> Array:
    """Return a copy in another dtype and the same memory order, as ``array.astype(dtype)``."""
    kinds = array.dtype.char + dtype.char
    if kinds not in _KERNELS or not dtype.isnative or not _is_ready(array):
        return array.astype(dtype)
    out = _empty_like(array, dtype)
    _run(array, out)
    return out


def copyto(out: Array, array: Array) -> None:
    """Write an array's elements into another, of any dtype, to which it broadcasts."""
    kinds = array.dtype.char + out.dtype.char
    if kinds in _KERNELS and _is_ready(array) and _is_ready(out) and _come_alike(array, out):
        _run(array, out)
    else:
        np.copyto(out, array, casting="unsafe")


_KERNELS = {"Ef": _casts.widen, "fE": _casts.round_to_nearest}


def _run(array: Array, out: Array) -> None:
    _KERNELS[array.dtype.char + out.dtype.char](bits(array), bits(out), array.size)


def _is_ready(array: Array) -> bool:
    """Return whether an array is worth a kernel, which walks memory that its elements fill."""
    if array.size < _LEAST or type(array) is not np.ndarray:  # those of the meta device have none
        return False
    return array.dtype.isnative and is_dense(array)


def _come_alike(array: Array, other: Array) -> bool:
    """Return whether the elements of two dense arrays come in one order."""
    if array.shape != other.shape:
        return False
    a, b = array.itemsize, other.itemsize
    axes = zip(array.shape, array.strides, other.strides, strict=True)
    return all(size == 1 or one * b == two * a for size, one, two in axes)


def _empty_like(array: Array, dtype: np.dtype) -> Array:
    """Return a new array, not cleared, that lies in memory as a dense one of another dtype does."""
    size = array.size * dtype.itemsize
    if size < memory.LEAST_BYTES:
        return np.empty_like(array, dtype)
    strides = [stride // array.itemsize * dtype.itemsize for stride in array.strides]
    return np.ndarray(array.shape, dtype, memory.Block(size), 0, strides)
