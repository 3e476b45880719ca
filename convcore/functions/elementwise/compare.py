"""Comparisons (eq, less, isclose, equal ...), isnan, unique, and properties; no gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, scalar_name, wrap
from convcore._tensor.creation.arguments import checked_number
from convcore._tensor.dtypes import common, number_dtype
from convcore._tensor.meta import NoValuesError, of_elements
from convcore._tensor.reads import reads
from convcore.autograd.node import record_without_derivative
from convcore.functions._support.arguments import check_arguments, check_kind, check_tensor
from convcore.functions._support.axes import wrap_dim
from convcore.functions._support.dispatch import of_each
from convcore.functions._support.errstate import ignore_errstate
from convcore.functions._support.in_place import in_place, in_place_methods
from convcore.functions._support.sorting import sortable
from convcore.functions.elementwise.arithmetic import operand
from convcore.functions.shapes.broadcast import broadcast_shape, joint_shape

__all__ = [
    "allclose",
    "eq",
    "equal",
    "ge",
    "greater",
    "greater_equal",
    "gt",
    "is_complex",
    "is_floating_point",
    "is_inference",
    "is_nonzero",
    "is_signed",
    "is_tensor",
    "isclose",
    "isfinite",
    "isinf",
    "isnan",
    "le",
    "less",
    "less_equal",
    "lt",
    "ne",
    "not_equal",
    "numel",
    "unique",
]


def _compare(ufunc: np.ufunc, name: str, input: Any, other: Any) -> Tensor:
    """Return ``ufunc(input, other)`` of the operands in their common dtype."""
    input, other = operand(input, name), operand(other, name)
    a = input._array if isinstance(input, Tensor) else input
    b = other._array if isinstance(other, Tensor) else other
    if ufunc in _ORDERS:
        dtype = common(a, b) if isinstance(a, np.ndarray) else common(b, a)
        if dtype.kind == "c":
            raise NotImplementedError(
                f"\"{_ORDERS[ufunc]}\" not implemented for '{scalar_name(dtype)}'"
            )
    return wrap(compare_arrays(ufunc, a, b))


# What compares by order, which complex numbers have none, and how PyTorch calls it.
_ORDERS = {
    np.less: "lt_cpu",
    np.less_equal: "le_cpu",
    np.greater: "gt_cpu",
    np.greater_equal: "ge_cpu",
}


def compare_arrays(ufunc: np.ufunc, a: Any, b: Any) -> np.ndarray:
    """Return ``ufunc`` of arrays, or of an array and a number, in their common dtype."""
    try:
        return np.asarray(_compared(ufunc, a, b))
    except NoValuesError:
        return of_elements(ufunc, joint_shape(a, b), a, b)


def _compared(ufunc: np.ufunc, a: Any, b: Any) -> Any:
    if a.__class__ is np.ndarray and b.__class__ is np.ndarray:
        if a.dtype != b.dtype:
            dtype = common(a, b)
            a, b = a.astype(dtype, copy=False), b.astype(dtype, copy=False)
        if a.shape != b.shape:
            broadcast_shape(a.shape, b.shape)
        return ignore_errstate(ufunc, a, b)
    array, number = (a, b) if isinstance(a, np.ndarray) else (b, a)
    dtype = common(array, number)
    # NumPy compares an integer exactly with any Python int, also with one that does not fit.
    if dtype.kind not in "iu" or number_dtype(number).kind not in "iu":
        array, number = array.astype(dtype, copy=False), ignore_errstate(dtype.type, number)
    return (
        ignore_errstate(ufunc, array, number)
        if a.__class__ is np.ndarray
        else ignore_errstate(ufunc, number, array)
    )


def eq(input: Tensor, other: Any) -> Tensor:
    """Return where input == other, element by element; ``other`` is a tensor or a number.

    Raises
    ------
    RuntimeError
        The shapes do not broadcast.
    TypeError
        ``other`` is neither.  (The operator == gives False then.)
    """
    return _compare(np.equal, "==", input, other)


def ne(input: Tensor, other: Any) -> Tensor:
    """Return where input != other, element by element; see `eq`."""
    return _compare(np.not_equal, "!=", input, other)


def lt(input: Tensor, other: Any) -> Tensor:
    """Return where input < other, element by element; see `eq`."""
    return _compare(np.less, "<", input, other)


def le(input: Tensor, other: Any) -> Tensor:
    """Return where input <= other, element by element; see `eq`."""
    return _compare(np.less_equal, "<=", input, other)


def gt(input: Tensor, other: Any) -> Tensor:
    """Return where input > other, element by element; see `eq`."""
    return _compare(np.greater, ">", input, other)


def ge(input: Tensor, other: Any) -> Tensor:
    """Return where input >= other, element by element; see `eq`."""
    return _compare(np.greater_equal, ">=", input, other)


def _operator(function: Callable) -> Callable:
    """Return a comparison operator; it returns NotImplemented for other operands."""

    def method(self: Tensor, other: Any) -> Any:
        if not isinstance(other, Tensor | int | float | complex | np.ndarray | np.generic):
            return NotImplemented
        return function(self, other)

    return method


@names_arguments
def isclose(
    input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """Return where |input - other| <= atol + rtol * |other|.

    Parameters
    ----------
    input, other : Tensors of one dtype, that broadcast
    rtol, atol : number, not negative
    equal_nan : bool
        Whether NaN is close to NaN.

    Raises
    ------
    RuntimeError
        The dtypes differ, or a tolerance is negative.
    """
    check_arguments("isclose", input=input, other=other)
    a, b = input._array, other._array
    if a.dtype != b.dtype:
        raise RuntimeError(f"{scalar_name(a.dtype)} did not match {scalar_name(b.dtype)}")
    rtol = checked_number("isclose", rtol, "rtol", True)
    atol = checked_number("isclose", atol, "atol", True)
    for name, value in (("rtol", rtol), ("atol", atol)):
        if not value >= 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value:g}")
    if a.shape != b.shape:
        broadcast_shape(a.shape, b.shape)
    return wrap(np.asarray(ignore_errstate(_isclose, a, b, rtol, atol, equal_nan)))


def _isclose(a: np.ndarray, b: np.ndarray, rtol: float, atol: float, equal_nan: bool) -> Any:
    close = a == b
    if equal_nan and a.dtype.kind in "fcV":
        close = close | (np.isnan(a) & np.isnan(b))
    if a.dtype.kind == "b":
        a, b = a.astype(np.int8), b.astype(np.int8)
    distance = np.maximum(a, b) - np.minimum(a, b) if a.dtype.kind in "iu" else np.absolute(a - b)
    allowed = atol + np.absolute(rtol * b)
    return close | (np.isfinite(distance) & (distance <= allowed))


@names_arguments
def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Return whether `isclose`, which has the same arguments, holds everywhere."""
    check_arguments("allclose", input=input, other=other)
    reads.count += 1
    return bool(np.all(isclose(input, other, rtol, atol, equal_nan)._array))


def equal(input: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have the same shape and equal elements."""
    check_arguments("equal", input=input, other=other)
    a, b = input._array, other._array
    reads.count += 1
    return a.shape == b.shape and bool(np.all(compare_arrays(np.equal, a, b)))


def isnan(input: Tensor) -> Tensor:
    """Return where the elements are not a number."""
    check_tensor("isnan", input)
    return wrap(of_each(np.isnan, input._array))


def isinf(input: Tensor) -> Tensor:
    """Return where the elements are infinite."""
    check_tensor("isinf", input)
    return wrap(of_each(np.isinf, input._array))


def isfinite(input: Tensor) -> Tensor:
    """Return where the elements are neither infinite nor NaN."""
    check_tensor("isfinite", input)
    return wrap(of_each(np.isfinite, input._array))


@names_arguments
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Return the unique elements in ascending order; NaN equals nothing, not even itself.

    Parameters
    ----------
    input : Tensor
    sorted : bool
        Of no effect: they always are.
    return_inverse, return_counts : bool
        Return, besides, where each element of input is among them, and how often each occurs.
    dim : int or None
        Compare the slices along this axis instead of the elements.
    """
    check_tensor("unique", input)
    check_kind("unique" if dim is None else "unique_dim", input, "fiubV")
    array, axis = input._array, None if dim is None else wrap_dim(dim, input._array.ndim)
    if dim is not None and not array.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    values, inverse, counts = np.unique(
        sortable(array), return_inverse=True, return_counts=True, axis=axis, equal_nan=False
    )
    inverse = inverse.reshape(array.shape if dim is None else -1)
    results = [wrap(values.astype(array.dtype, copy=False))]
    record_without_derivative("unique", (input,), results[0])
    if return_inverse:
        results.append(wrap(inverse.astype(np.int64)))
    if return_counts:
        results.append(wrap(counts.astype(np.int64)))
    return tuple(results) if len(results) > 1 else results[0]


def is_tensor(obj: Any) -> bool:
    """Return whether an object is a Tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> bool:
    """Return whether the elements are real floating-point numbers."""
    check_tensor("is_floating_point", input)
    return input.is_floating_point()


def is_signed(input: Tensor) -> bool:
    """Return whether the dtype is signed."""
    check_tensor("is_signed", input)
    return input.is_signed()


def is_inference(input: Tensor) -> bool:
    """Return whether a tensor was made inside `inference_mode`."""
    check_tensor("is_inference", input)
    return input.is_inference()


def is_complex(input: Tensor) -> bool:
    """Return whether the elements are complex numbers."""
    check_tensor("is_complex", input)
    return input.is_complex()


def is_nonzero(input: Tensor) -> bool:
    """Return whether the one element of a tensor is not zero.

    Raises
    ------
    RuntimeError
        It has more elements, or none.
    """
    check_tensor("is_nonzero", input)
    return bool(input)


def numel(input: Tensor) -> int:
    """Return the number of elements."""
    check_tensor("numel", input)
    return input._array.size


greater = gt
greater_equal = ge
less = lt
less_equal = le
not_equal = ne


FUNCTIONS_ONLY = {
    *("is_complex", "is_floating_point", "is_inference", "is_signed", "is_tensor", "numel")
}
_COMPARISONS = eq, ge, gt, le, lt, ne
METHODS = {
    **{f"__{function.__name__}__": _operator(function) for function in _COMPARISONS},
    **in_place_methods(*_COMPARISONS),
    "greater_": in_place(gt),
    "greater_equal_": in_place(ge),
    "less_": in_place(lt),
    "less_equal_": in_place(le),
    "not_equal_": in_place(ne),
}
