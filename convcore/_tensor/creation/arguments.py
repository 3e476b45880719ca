"""Checks and conversions of the arguments of creation functions: sizes, numbers, dtypes."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from operator import index
from typing import Any

import numpy as np

from convcore._tensor import Tensor, dtypes, wrap
from convcore._tensor.creation.out import written
from convcore._tensor.device import is_meta
from convcore._tensor.meta import MetaArray, meta
from convcore.engine.integers import as_int
from convcore.engine.runtime.checks import is_too_large
from convcore.engine.runtime.errstate import quiet

DtypeLike = dtypes.dtype | np.dtype | type | None


def leaf(
    array: np.ndarray, requires_grad: bool = False, device: Any = None, out: Tensor | None = None
) -> Tensor:
    """Return a new leaf tensor around an ndarray, sharing its memory; on 'meta' only its shape.

    Raises
    ------
    RuntimeError
        ``requires_grad`` is set for integers or bools.
    TypeError
        It is no bool.
    NotImplementedError
        The array is on meta, and the ``device`` is another one.
    """
    if requires_grad is not False and requires_grad is not True:
        kind = type(requires_grad).__name__
        raise TypeError(f"argument 'requires_grad' must be bool, not {kind}")
    if is_meta(device):
        array = meta(array.shape, array.dtype)
    elif device is not None and isinstance(array, MetaArray):
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    made = wrap(array) if out is None else written(out, array)
    if requires_grad:
        if array.dtype.kind not in dtypes.INEXACT:
            raise RuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients"
            )
        made._requires_grad = True
    return made


def shape(function: str, sizes: Sequence[Any], size: Any = None) -> tuple[int, ...]:
    """Return the shape given as several ints or as one sequence of ints.

    Raises
    ------
    TypeError
        There is none, or a size is not an int; the message names the ``function``.
    RuntimeError
        A size is negative.
    """
    if size is not None:
        sizes = (size,)
    elif not sizes:
        raise TypeError(f'{function}() missing 1 required positional arguments: "size"')
    single = len(sizes) == 1
    if single and isinstance(sizes[0], tuple | list):
        sizes, single = sizes[0], False
    elif not single and isinstance(sizes[0], tuple | list):
        raise TypeError(f"{function}() takes 1 positional argument but {len(sizes)} were given")
    found = tuple(
        number if number.__class__ is int else checked_size(function, place, number, single)
        for place, number in enumerate(sizes)
    )
    if found and min(found) < 0:
        if function == "zeros":
            raise RuntimeError("zeros: Dimension size must be non-negative.")
        negative = next(number for number in found if number < 0)
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {negative}: {list(found)}"
        )
    return found


def allocated(make: Callable, sizes: tuple[int, ...], *args: Any, **kwargs: Any) -> np.ndarray:
    """Return the array that ``make(sizes, ...)`` makes; RuntimeError, not NumPy's, if too large.

    Raises
    ------
    RuntimeError
        No memory has so many bytes: 2**63, where sizes of 0 count as 1.
    """
    try:
        return make(sizes, *args, **kwargs)
    except ValueError as error:
        if is_too_large(error):
            raise too_large(sizes) from None
        raise


def too_large(sizes: Sequence[int]) -> RuntimeError:
    """Return the error of a shape for which no memory is large enough."""
    return RuntimeError(f"Storage size calculation overflowed with sizes={list(sizes)}")


def counted(n: int) -> np.ndarray:
    """Return 0 to n - 1; RuntimeError where no memory holds them."""
    if n >= 2**60:  # of 2**63 - 1 NumPy makes none, and says nothing
        raise too_large((n,))
    return allocated(lambda sizes: np.arange(*sizes), (n,))


def checked_size(function: str, place: int, number: Any, single: bool) -> int:
    """Return one size, an int-like object, as a plain int."""
    try:
        return index(number) if place else as_int(number)
    except TypeError:
        pass
    kind = type(number).__name__
    where = f", not {kind}" if single else f", but found element of type {kind} at pos {place}"
    raise TypeError(f"{function}(): argument 'size' (position 1) must be tuple of ints{where}")


def checked_int(function: str, name: str, number: Any) -> int:
    """Return an argument that must be an int."""
    try:
        return as_int(number)
    except TypeError:
        kind = type(number).__name__
        raise TypeError(f"{function}(): argument '{name}' must be int, not {kind}") from None


_PLAIN = frozenset((int, float))  # most numbers are of these, and are returned as they are
_REAL = (int, float, np.bool_, np.integer, np.floating)


def checked_number(function: str, number: Any, name: str = "fill_value", real: bool = False) -> Any:
    """Return an argument that must be a number or a 0-d Tensor, as a number."""
    if number.__class__ in _PLAIN:
        return number
    if isinstance(number, Tensor) and number._array.ndim == 0:
        number = number._array.item()
    if isinstance(number, _REAL):
        return number
    if isinstance(number, builtins.complex | np.complexfloating) and not real:
        return number
    raise TypeError(f"{function}(): argument '{name}' must be Number, not {type(number).__name__}")


def factor(function: str, name: str, value: Any, dtype: np.dtype) -> Any:
    """Return an argument by which numbers of a dtype are multiplied: of integers without fraction.

    Raises
    ------
    RuntimeError
        The dtype has no such number.
    """
    if value.__class__ in _PLAIN and dtype.kind in "fcV":
        return value
    made = number_as(checked_number(function, value, name), dtype)
    return made if made.__class__ is bool else made.item()


_C_NAMES = {
    "uint8": "uint8_t",
    "int8": "int8_t",
    "int16": "short",
    "int32": "int",
    "int64": "int64_t",
    "float16": "c10::Half",
    "float32": "float",
    "float64": "double",
}


def number_as(number: Any, target: np.dtype) -> Any:
    """Convert a Python number to the dtype ``target``.

    Raises
    ------
    RuntimeError
        Overflow: it is too large, not finite for an integer, or complex for a real type.
    TypeError
        It is no number: NumPy would take a string that looks like one.
    """
    if not isinstance(number, (*_REAL, builtins.complex, np.complexfloating)):
        raise TypeError(f"must be a number, not {type(number).__name__}")
    if target.kind == "b":
        return bool(number)
    try:
        if target.kind != "c" and isinstance(number, builtins.complex | np.complexfloating):
            if number.imag:
                raise OverflowError
            number = number.real
        if target.kind in "iu":
            return _integer_as(number, target)
        cast = quiet(target.type, number)
        if not np.isfinite(cast) and np.isfinite(number):
            raise OverflowError
        return cast
    except OverflowError:
        name = _C_NAMES.get(target.name, target.name)
        raise RuntimeError(f"value cannot be converted to type {name} without overflow") from None


def element(number: Any, dtype: np.dtype) -> np.ndarray:
    """Return a Python number as an array without axes, or raise if the dtype cannot hold it."""
    if dtype.kind == "f" and number.__class__ in (int, float) and -6e4 < number < 6e4:
        return np.array(number, dtype)  # every floating type holds it: no need to look closer
    return np.asarray(number_as(number, dtype), dtype)


def _integer_as(number: Any, target: np.dtype) -> Any:
    """Truncate a real number to an integer; a negative one wraps around if it is unsigned.

    That is so of integers: a negative float is an error then.
    """
    if number != number or (target.kind == "u" and isinstance(number, float) and number < 0):
        raise OverflowError
    whole, limits = int(number), np.iinfo(target)
    lowest = -limits.max if target.kind == "u" else limits.min
    if not lowest <= whole <= limits.max:
        raise OverflowError
    return target.type(whole if whole >= limits.min else whole + limits.max + 1)


def check_tensor(function: str, name: str, value: Any) -> None:
    if not isinstance(value, Tensor):
        kind = type(value).__name__
        raise TypeError(f"{function}(): argument '{name}' must be Tensor, not {kind}")
