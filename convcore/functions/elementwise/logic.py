"""Logical and bitwise operations; they have no gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from convcore._tensor import Tensor, scalar_name, wrap
from convcore._tensor.dtypes import common
from convcore.functions._support.arguments import check_tensor, check_tensors
from convcore.functions._support.dispatch import of_each
from convcore.functions._support.in_place import in_place, in_place_methods
from convcore.functions.elementwise.arithmetic import compute, operand
from convcore.functions.elementwise.compare import compare_arrays

__all__ = [
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
]


def logical_and(input: Tensor, other: Tensor) -> Tensor:
    """Return the logical AND, element by element: where both elements are not zero."""
    return _logical(np.logical_and, input, other)


def logical_or(input: Tensor, other: Tensor) -> Tensor:
    """Return the logical OR, element by element: where at least one element is not zero."""
    return _logical(np.logical_or, input, other)


def logical_xor(input: Tensor, other: Tensor) -> Tensor:
    """Return the logical XOR, element by element: where exactly one element is not zero."""
    return _logical(np.logical_xor, input, other)


def logical_not(input: Tensor) -> Tensor:
    """Return the logical NOT of each element: where it is zero."""
    check_tensor("logical_not", input)
    return wrap(of_each(np.logical_not, input._array))


def _logical(ufunc: np.ufunc, x: Tensor, y: Tensor) -> Tensor:
    check_tensors(ufunc.__name__, x, y)
    a, b = x._array, y._array
    return wrap(compare_arrays(ufunc, a, b))


def _bits(ufunc: np.ufunc, name: str, input: Any, other: Any) -> Tensor:
    input, other = operand(input, name), operand(other, name)
    a = input._array if isinstance(input, Tensor) else input
    b = other._array if isinstance(other, Tensor) else other
    dtype = common(a, b) if isinstance(a, np.ndarray) else common(b, a)
    if dtype.kind not in "biu":
        kind = scalar_name(dtype)
        raise NotImplementedError(f"\"{ufunc.__name__}_cpu\" not implemented for '{kind}'")
    return wrap(compute(ufunc, a, b))


def bitwise_and(input: Any, other: Any) -> Tensor:
    """Return the bitwise AND of integers or bools, element by element."""
    return _bits(np.bitwise_and, "&", input, other)


def bitwise_or(input: Any, other: Any) -> Tensor:
    """Return the bitwise OR of integers or bools, element by element."""
    return _bits(np.bitwise_or, "|", input, other)


def bitwise_xor(input: Any, other: Any) -> Tensor:
    """Return the bitwise XOR of integers or bools, element by element."""
    return _bits(np.bitwise_xor, "^", input, other)


def bitwise_left_shift(input: Any, other: Any) -> Tensor:
    """Return integers with their bits shifted to the left by ``other`` places."""
    return _bits(np.left_shift, "<<", input, other)


def bitwise_right_shift(input: Any, other: Any) -> Tensor:
    """Return integers with their bits shifted to the right by ``other`` places; the sign stays."""
    return _bits(np.right_shift, ">>", input, other)


def bitwise_not(input: Tensor) -> Tensor:
    """Return the bitwise NOT of integers; of bools the logical one."""
    check_tensor("bitwise_not", input)
    array = input._array
    if array.dtype.kind not in "biu":
        raise TypeError(
            "~ (operator.invert) is only implemented on integer and Boolean-type tensors"
        )
    return wrap(of_each(np.invert, array))


def _reflected(function: Callable) -> Callable:
    return lambda self, other: function(other, self)


METHODS: dict[str, Callable] = {
    "__invert__": bitwise_not,
    **in_place_methods(bitwise_and, bitwise_left_shift, bitwise_not, bitwise_or),
    **in_place_methods(bitwise_right_shift, bitwise_xor),
    **in_place_methods(logical_and, logical_not, logical_or, logical_xor),
}
for _name, _function in (
    ("and", bitwise_and),
    ("lshift", bitwise_left_shift),
    ("or", bitwise_or),
    ("rshift", bitwise_right_shift),
    ("xor", bitwise_xor),
):
    METHODS[f"__{_name}__"] = _function
    METHODS[f"__r{_name}__"] = _reflected(_function)
    METHODS[f"__i{_name}__"] = in_place(_function)
