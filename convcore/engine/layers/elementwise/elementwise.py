"""Elementwise operations and their gradients: compiled, in one pass, multithreaded.

The ops are those of ops.h, by name.  Their kernels take dense float32, float64 and bfloat16 arrays;
`forward` and `gradient` convert others, such as float16.  With bfloat16 each result is computed in
float32 and rounded once.  Results have the layout of their arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from convcore.engine.layers.elementwise import _elementwise
from convcore.engine.runtime import memory
from convcore.engine.runtime.checks import plain
from convcore.engine.runtime.errstate import quiet
from convcore.engine.runtime.layout import is_channels_last, is_dense

Array = np.ndarray[Any, Any]


class Op(NamedTuple):
    """An op's row in engine/layers/elementwise/ops.h."""

    number: int
    saved: str  # array that its gradient needs: 'input' or 'result'; '' for an op of two arrays
    parameters: int
    cost: float  # per element, in multiply-adds
    has_double: bool


OPS = {name: Op(*entry) for name, entry in _elementwise.OPS.items()}

# Smaller arrays are not worth the call where NumPy has the op.  Where NumPy needs several steps the
# kernel is faster from 4 elements on (1.2 times), but results of some ops would change in the last
# bit.  A sum or product runs on one thread below 1 << 17, where NumPy is 1.4 to 1.8 times as fast;
# relu and a sum with a value per channel are equally fast at 4096:
# benchmarks/sweep.py --threads 1 --constant engine.layers.elementwise.elementwise._LEAST_OF_ONE.sum
# --values 16384,1000000000 --calls "sum of"; and the others with --values 0,1000000
_LEAST = 16
_LEAST_OF_BFLOAT16 = 1 << 8
_LEAST_OF_ONE = {"relu": 1 << 11, "sum": 1 << 17, "product": 1 << 17}
_LEAST_BY_CHANNEL = {"sum": 1 << 11, "product": 1 << 11}

# Converting an element from float16 and back takes several times as long as a cheap op: 2 to 3
# times slower for relu's gradient, but 2 to 5 times faster for hardswish and silu:
# benchmarks/sweep.py --threads 1 --constant engine.layers.elementwise.elementwise._CHEAP
# --values 0,1000 --calls float16
_CHEAP = 8

_HALF, _SINGLE, _DOUBLE = np.dtype("f2"), np.dtype("f4"), np.dtype("f8")


def is_half(dtype: np.dtype) -> bool:
    """Return whether a dtype is float16 or bfloat16."""
    return dtype.kind in "fV" and dtype.itemsize == 2


def computes(op: str, dtype: np.dtype) -> bool:
    """Return whether `forward` and `gradient` accept arrays of a dtype."""
    return dtype.kind in "fV" and (dtype != _DOUBLE or OPS[op].has_double)


def is_worth_converting(op: str, dtype: np.dtype) -> bool:
    """Return whether to compute a gradient in float32 instead of with NumPy masks.

    False only for float16, where the masks are faster and no parameter would be rounded.
    """
    return dtype != _HALF or OPS[op].cost > _CHEAP or OPS[op].parameters > 0


def has_kernel(op: str, array: Array, *others: Array) -> bool:
    """Return whether a kernel accepts the arrays: large, dense, same dtype and memory order."""
    least = _LEAST_OF_ONE.get(op, _LEAST) if array.dtype.char != "E" else _LEAST_OF_BFLOAT16
    if array.size < least:
        return False
    return _is_ready(op, array) and all(_lie_alike(other, array) for other in others)


def _is_ready(op: str, array: Array) -> bool:
    """Return whether a kernel accepts an array without conversion."""
    if array.dtype == _SINGLE or array.dtype.char == "E":
        return is_dense(array)
    return array.dtype == _DOUBLE and OPS[op].has_double and is_dense(array)


def _lie_alike(other: Array, array: Array) -> bool:
    """Return whether two arrays, one of them dense, have the same dtype, shape and memory order."""
    if other.dtype != array.dtype or other.shape != array.shape:
        return False
    if other.strides == array.strides:
        return other.flags.aligned
    axes = zip(array.shape, array.strides, other.strides, strict=True)
    return other.flags.aligned and all(size == 1 or a == b for size, a, b in axes)


def empty_like(array: Array) -> Array:
    """Return a new uninitialised array with a dense array's shape, dtype and strides."""
    if array.nbytes < memory.LEAST_BYTES:
        return np.empty_like(array)
    return np.ndarray(array.shape, array.dtype, memory.Block(array.nbytes), 0, array.strides)


def laid_out_like(array: Array, model: Array) -> Array:
    """Return the array in the dtype and memory order of a dense one; copy only if they differ."""
    if array.dtype == model.dtype and array.strides == model.strides and array.flags.aligned:
        return array
    copy = empty_like(model)
    np.copyto(copy, array)
    return copy


def step_of(op: str, params: Sequence[float] = ()) -> Callable[[Array, Any, Array], None]:
    """Return f(x, other, out) for float32 arrays of the same layout; other may be None.

    For programs that repeat the same call.
    """
    number, params = OPS[op].number, tuple(params)
    apply = _elementwise.apply

    def step(x: Array, other: Array | None, out: Array) -> None:
        apply(number, x, other, out, params)

    return step


def step_by_channel(
    op: str, shape: Sequence[int], images: int, channels_last: bool
) -> Callable[[Array, Array, Array], None]:
    """Return f(x, numbers, out) for float32 arrays of the same layout, dense in a memory format.

    For programs that repeat the same call; see `by_channel`.

    Parameters
    ----------
    op : 'sum', 'product', 'prelu' or 'prelu_slope'
    shape : (N, C, *sizes), of x and out
    images : N, or 1 for the same values in all images
        The values are (images, C), contiguous.
    channels_last : bool
    """
    number, channels, pixels = OPS[op].number, shape[1], math.prod(shape[2:])
    apply = _elementwise.apply_channels

    def step(x: Array, numbers: Array, out: Array) -> None:
        apply(number, x, numbers, out, images, channels, pixels, channels_last)

    return step


def forward(op: str, x: Array, params: Sequence[float] = ()) -> Array:
    """Compute an op of each element.

    Parameters
    ----------
    op : str
        An op of one array.
    x : float16, float32 or float64, of any strides
    params : the op's parameters
    """
    if op == "hardshrink":
        params = _rounded(params, x.dtype)
    if not _is_ready(op, x):
        return _converted(forward, op, params, x)
    out = empty_like(x)
    _apply(op, x, None, out, params)
    return out


def _rounded(params: Sequence[float], dtype: np.dtype) -> Sequence[float]:
    """Round parameters to bfloat16 or float16, as PyTorch does for the shrinking ops.

    Parameters of other ops stay float32.
    """
    return [float(quiet(dtype.type, one)) for one in params] if is_half(dtype) else params


def _apply(op: str, x: Array, other: Array | None, out: Array, params: Sequence[float]) -> None:
    """Apply an op to arrays of the same layout."""
    if x.dtype.char == "E":  # buffers do not support bfloat16
        x, out = x.view(np.uint16), out.view(np.uint16)
        other = None if other is None else other.view(np.uint16)
    _elementwise.apply(OPS[op].number, x, other, out, params)


def forward_in_place(op: str, x: Array) -> None:
    """Apply an op to each element of an array in place; the array must have a kernel."""
    _apply(op, x, None, x, ())


def gradient(op: str, grad: Array, saved: Array, params: Sequence[float] = ()) -> Array:
    """Return the gradient with respect to an op's argument.

    Parameters
    ----------
    op : str
        An op of one array.
    grad : Array
        The gradient of the op's result.
    saved : Array, of grad's shape and dtype
        The op's argument or its result: `OPS` says which one.
    params : numbers
    """
    if op in ("hardshrink", "softshrink"):
        params = _rounded(params, saved.dtype)
    if not any(grad.strides) and grad.dtype == saved.dtype and _is_ready(op, saved):
        grad = laid_out_like(grad, saved)  # a broadcast scalar: the gradient of a sum
    if not _is_ready(op, saved) or not _lie_alike(grad, saved):
        return _converted(gradient, op, params, grad, saved)
    out = empty_like(grad)
    _apply(op, saved, grad, out, params)
    return out


def _converted(function: Callable, op: str, params: Sequence[float], *arrays: Array) -> Array:
    """Call a function with copies that a kernel accepts: float64, or float32 for other dtypes.

    The result has the arrays' dtype and the layout of a NumPy ufunc's result.
    """
    dtype = arrays[0].dtype
    wide = _DOUBLE if dtype == _DOUBLE else _SINGLE
    model = _ufunc_result(arrays, wide)
    value = function(op, *(quiet(laid_out_like, array, model) for array in arrays), params)
    return quiet(value.astype, dtype, copy=False)


def _ufunc_result(arrays: tuple[Array, ...], dtype: np.dtype) -> Array:
    """Return an uninitialised array with the layout of a NumPy ufunc's result."""
    operands: Any = (*arrays, None)
    flags: Any = [["readonly"]] * len(arrays) + [["writeonly", "allocate"]]
    dtypes = [None] * len(arrays) + [dtype]
    return np.nditer(operands, ["zerosize_ok"], flags, dtypes).operands[-1]


def binary(
    op: str, a: Array, b: Array, params: Sequence[float] = (), out: Array | None = None
) -> Array:
    """Compute an op of two arrays that have a kernel, such as 'sum'; ``out`` may be one of them."""
    if out is None:
        out = empty_like(a)
    _apply(op, b, a, out, params)
    return out


def by_channel(op: str, x: Array, numbers: Array) -> Array | None:
    """Compute an op of an array and one value per channel; return None if there is no kernel.

    Parameters
    ----------
    op : 'sum', 'product', 'prelu' or 'prelu_slope'
    x : (N, C, *sizes), float32 or float64, in one of the two memory formats
    numbers : (N, C, 1, ...) or (1, C, 1, ...), of x's dtype
    """
    shape, images = x.shape, numbers.shape[:1]
    if (
        x.size < _LEAST_BY_CHANNEL.get(op, _LEAST)
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
    numbers = np.ascontiguousarray(plain(numbers))
    pixels = math.prod(shape[2:])
    _elementwise.apply_channels(OPS[op].number, x, numbers, out, images[0], shape[1], pixels, last)
    return out


def add_to(total: Array, array: Array) -> None:
    """Add an array in place; it is broadcast and converted by NumPy's rules."""
    if has_kernel("sum", total, array):
        binary("sum", total, array, out=total)
    else:
        quiet(np.add, total, array, out=total)  # infinities of both signs warn
