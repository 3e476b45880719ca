"""Checks of arrays before a kernel sees them; errors name the argument."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convcore.engine.geometry import Geometry, is_sequence
from convcore.engine.integers import as_int

Array = NDArray[Any]
DTYPES = tuple(np.dtype(t) for t in ("float32", "float64", "complex64", "complex128"))


def check_dtype(name: str, dtype: np.dtype[Any]) -> None:
    """Raise TypeError unless the dtype is one that the engine computes in.

    Integers and booleans are refused, not converted: float64 holds them exactly up to 2**53, and
    the caller says so with one ``astype``.  float16 is refused because no BLAS multiplies it;
    computing in float32 and rounding once is again one ``astype`` each way.
    """
    if dtype not in DTYPES or not dtype.isnative:
        raise TypeError(
            f"{name} must be an array of float32, float64, complex64 or complex128, "
            f"got {dtype.name if dtype.isnative else dtype.str}; convert it with .astype(...)"
        )


def checked_array(name: str, value: Any, bfloat16: bool = False) -> Array:
    """Return value as a plain ndarray; TypeError if it is none, or a masked one.

    bfloat16 : whether it may be of that dtype too, which only some of the engine reads.
    """
    is_plain = value.__class__ is np.ndarray
    if not is_plain and (not isinstance(value, np.ndarray) or isinstance(value, np.ma.MaskedArray)):
        raise TypeError(f"{name} must be a numpy.ndarray, got {type(value).__name__}")
    if not (bfloat16 and value.dtype.char == "E"):
        check_dtype(name, value.dtype)
    return value if is_plain else plain(value)


def plain(array: Array) -> Array:
    """Return an array as a plain ndarray; one of the meta device, which has no values, raises."""
    if hasattr(array, "refuse"):
        array.refuse()
    return np.asarray(array)


def checked_bias(bias: Any, dtype: np.dtype[Any], channels: int) -> Array:
    """Return bias, contiguous; an error unless it is one number a channel, of the same dtype."""
    bias = checked_array("bias", bias, bfloat16=True)
    if bias.dtype != dtype:
        raise TypeError(
            "Input type and bias type should be the same: "
            f"bias must have the dtype of input, {dtype.name}, got {bias.dtype.name}"
        )
    if bias.shape != (channels,):
        raise ValueError(
            f"bias must have one element an output channel, shape [{channels}], "
            f"got shape {list(bias.shape)}"
        )
    return np.require(bias, requirements=["C", "A"])


def common_itemsize(*arrays: tuple[str, np.dtype[Any]]) -> int:
    """Return the itemsize of the one dtype of the arrays; an error if there is no such dtype."""
    for name, dtype in arrays:
        check_dtype(name, dtype)
    (left, left_dtype), (right, right_dtype) = arrays
    if left_dtype != right_dtype:
        raise TypeError(
            f"{left} and {right} should be the same dtype, "
            f"got {left_dtype.name} and {right_dtype.name}"
        )
    return left_dtype.itemsize


def whole_elements(array: Array) -> Array:
    """Return the array, or a copy if its elements do not lie on multiples of their size.

    A field of a packed structured array is the usual case.
    """
    flags = array.flags
    if flags.aligned and (flags.forc or all(s % array.itemsize == 0 for s in array.strides)):
        return array
    return array.copy(order="K")


def check_output(name: str, shape: tuple[int, ...], g: Geometry) -> None:
    """Raise ValueError unless the shape is that of the convolution's output."""
    if shape != g.output_shape:
        raise ValueError(
            f"{name} must have the shape of the convolution's output, {list(g.output_shape)}, "
            f"got {list(shape)}"
        )


def check_memory(shape: Sequence[int], itemsize: int) -> None:
    """Raise MemoryError if a result of this shape could not be addressed; sizes of 0 count as 1."""
    if 0 < math.prod(shape) * itemsize <= sys.maxsize:
        return
    if math.prod(max(n, 1) for n in shape) * itemsize > sys.maxsize:
        raise MemoryError(f"a result of shape {list(shape)} is larger than any memory")


# Of NumPy's ValueErrors, how those begin that say that no memory holds so much.
_TOO_LARGE = ("array is too big", "broadcast dimensions too large", "Maximum allowed ")


def is_too_large(error: ValueError) -> bool:
    """Return whether NumPy refused a size, and nothing else."""
    return str(error).startswith(_TOO_LARGE)


def plain_parameter(value: Any) -> Any:
    """Return what stands for an int as one, and nested lists and arrays as tuples of them.

    Bools, what is no int, and long sequences stay as they are.
    """
    if is_sequence(value):
        return tuple(map(plain_parameter, value)) if len(value) <= 8 else value
    try:
        return as_int(value)
    except TypeError:
        return value
