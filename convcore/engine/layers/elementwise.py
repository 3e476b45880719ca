"""Functions of each element, in one pass on all threads.

NumPy computes what is of another dtype or has gaps in memory, and, as fast, what is small: `suits`
tells which arrays come here.  Results lie in memory as their arguments do.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from convcore.engine.runtime import memory
from convcore.engine.runtime.layout import is_channels_last
from convcore.kernels.layers import _elementwise

Array = np.ndarray[Any, Any]

# Smaller arrays are not worth the call, which takes as long as some four of NumPy's; there are
# functions that NumPy has in one.  Chosen by hand.
_LEAST = 16
_LEAST_OF_ONE = {"relu": 1 << 11, "sum": 1 << 14, "product": 1 << 14}
_LEAST_BY_CHANNEL = {"sum": 1 << 11, "product": 1 << 11}

# How long an element takes, in multiply-adds: what decides on the number of threads.
_CHEAP = dict.fromkeys(
    (
        "relu",
        "clamp",
        "leaky_relu",
        "prelu",
        "prelu_slope",
        "sum",
        "product",
        "huber",
        "huber_slope",
    ),
    8.0,
)
_DEAR = dict.fromkeys(_elementwise.FUNCTIONS.keys() - _CHEAP.keys(), 32.0)
_WORK = _CHEAP | _DEAR

_SINGLE, _DOUBLE = np.dtype("f4"), np.dtype("f8")

# The only one without a kernel for float64.
_SINGLE_ONLY = "gelu"


def has_kernel(function: str, array: Array, *others: Array) -> bool:
    """Return whether arrays are worth it, of one dtype of a kernel, and lie alike without gaps."""
    if array.size < _LEAST_OF_ONE.get(function, _LEAST):
        return False
    if array.dtype != _SINGLE and (array.dtype != _DOUBLE or function == _SINGLE_ONLY):
        return False
    for other in others:
        if (
            other.dtype != array.dtype
            or other.shape != array.shape
            or (other.strides != array.strides and not _alike(other, array))
        ):
            return False
    return is_dense(array)


def _alike(array: Array, other: Array) -> bool:
    """Return whether the elements of two dense arrays of one shape come in the same order."""
    axes = zip(array.shape, array.strides, other.strides, strict=True)
    return all(size == 1 or a == b for size, a, b in axes)


def is_dense(array: Array) -> bool:
    """Return whether the elements fill their memory in some order of the axes, aligned."""
    flags = array.flags
    return flags.aligned and (flags.forc or _fills(array.shape, array.strides, array.itemsize))


@functools.lru_cache(maxsize=256)
def _fills(shape: tuple[int, ...], strides: tuple[int, ...], step: int) -> bool:
    axes = zip(strides, shape, strict=True)
    for stride, size in sorted([axis for axis in axes if axis[1] != 1]):
        if stride != step:
            return False
        step *= size
    return True


def empty_like(array: Array) -> Array:
    """Return a new array that lies in memory as a dense one does, not cleared."""
    if array.nbytes < memory.LEAST_BYTES:
        return np.empty_like(array)
    return np.ndarray(array.shape, array.dtype, memory.Block(array.nbytes), 0, array.strides)


def laid_out_like(array: Array, model: Array) -> Array:
    """Return the array, or a copy of it, with the dtype of a dense model and lying as that does."""
    if array.dtype == model.dtype and array.strides == model.strides and array.flags.aligned:
        return array
    copy = empty_like(model)
    copy[...] = array
    return copy


def step_of(function: str, terms: Sequence[float] = ()) -> Callable[[Array, Any, Array], None]:
    """Return f(x, other, out) for float32 arrays that lie alike, of any size; other may be None.

    For programs that do the same again and again.
    """
    number, work, constants = _elementwise.FUNCTIONS[function], _WORK[function], tuple(terms)
    apply = _elementwise.apply

    def step(x: Array, other: Array | None, out: Array) -> None:
        apply(number, x, other, out, work, constants)

    return step


def forward(
    function: str, x: Array, terms: Sequence[float] = (), out: Array | None = None
) -> Array:
    """Return a function of each element of an array that `suits`.

    Parameters
    ----------
    function : str
        One of `convcore.kernels.layers._elementwise.FUNCTIONS`.
    x : float32 or float64
    terms : numbers
        The function's constants.
    out : Array, optional
        Where the result is put: x itself, or an array like it.
    """
    if out is None:
        out = empty_like(x)
    _elementwise.apply(_elementwise.FUNCTIONS[function], x, None, out, _WORK[function], terms)
    return out


def gradient(
    function: str,
    grad: Array,
    kept: Array,
    terms: Sequence[float] = (),
    out: Array | None = None,
) -> Array:
    """Return the gradient of a function's argument; ``grad`` and ``kept`` suit each other.

    Of 'sum' and other functions of two arrays, return that of the two.

    Parameters
    ----------
    function : str
    grad : Array
        The gradient of the function's result.
    kept : Array, like grad
        The argument or the result, as the function says in kernels/layers/elementwise.h.
    terms : numbers
    out : Array, optional
        Where the result is put: one of the two, or an array like them.
    """
    if out is None:
        out = empty_like(grad)
    _elementwise.apply(_elementwise.FUNCTIONS[function], kept, grad, out, _WORK[function], terms)
    return out


def by_channel(function: str, x: Array, numbers: Array) -> Array | None:
    """Return a function of two arrays, one of which has a number a channel; None if not for these.

    Parameters
    ----------
    function : 'sum', 'product', 'prelu' or 'prelu_slope'
    x : (N, C, *sizes), float32 or float64, in one of the two memory formats
    numbers : (N, C, 1, ...) or (1, C, 1, ...), of x's dtype
    """
    shape, images = x.shape, numbers.shape[:1]
    if (
        x.size < _LEAST_BY_CHANNEL.get(function, _LEAST)
        or x.dtype not in (_SINGLE, _DOUBLE)
        or numbers.dtype != x.dtype
        or len(shape) < 3
        or numbers.shape != (*images, shape[1], *(1,) * (len(shape) - 2))
        or images not in ((1,), shape[:1])
    ):
        return None
    last = not x.flags.c_contiguous
    if not is_dense(x) or (last and not is_channels_last(shape, x.strides)):
        return None
    out = empty_like(x)
    numbers = np.ascontiguousarray(numbers)
    pixels = math.prod(shape[2:])
    _elementwise.apply_channels(
        *(_elementwise.FUNCTIONS[function], x, numbers, out, images[0], shape[1], pixels, last),
        _WORK[function],
    )
    return out


def add_to(total: Array, array: Array) -> None:
    """Add an array, which broadcasts and is converted as NumPy does it, in place."""
    if has_kernel("sum", total, array):
        gradient("sum", total, array, out=total)
    else:
        np.add(total, array, out=total)
