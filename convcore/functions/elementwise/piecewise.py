"""where, clamp, maximum and minimum: elementwise choices between operands."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from convcore._errors import hinted, hints
from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, scalar_name, wrap
from convcore._tensor.creation.arguments import checked_number, element
from convcore._tensor.dtypes import INEXACT, result_numpy
from convcore._tensor.limits import finfo
from convcore._tensor.meta import NoValuesError, of_elements
from convcore.autograd.grad_mode import mode
from convcore.autograd.node import describe, record
from convcore.functions._support.arguments import (
    check_arguments,
    check_kind,
    check_tensor,
    check_tensors,
    number,
    refuse_complex,
    typename,
)
from convcore.functions._support.dispatch import of_each
from convcore.functions._support.in_place import in_place, in_place_methods
from convcore.functions.elementwise.arithmetic import _number, compute, mul, operand
from convcore.functions.elementwise.in_float32 import in_float32
from convcore.functions.shapes.broadcast import fitted, joint_shape

__all__ = [
    "clamp",
    "clamp_max",
    "clamp_min",
    "clip",
    "fmax",
    "fmin",
    "maximum",
    "minimum",
    "nan_to_num",
    "where",
]


# masked: the gradient of every function in this file

_BITS = {np.dtype(c): np.dtype(f"i{size}") for c, size in zip("efdF", "2488", strict=True)}


def kept(array: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return the array where the mask is true and 0 elsewhere, also where it is infinite or NaN."""
    bits = _BITS.get(array.dtype)
    if bits is None:
        return np.asarray(np.where(mask, array, array.dtype.type(0)))
    # A number's bits times 1 or 0: much faster than np.where, and NaN * 0 is 0.
    return np.asarray(np.multiply(array.view(bits), mask)).view(array.dtype)


def masked(x: Tensor, mask: np.ndarray | Tensor) -> Tensor:
    """Return ``x`` where the mask is true and 0 elsewhere; the map is its own adjoint.

    A mask that the user can change in place is a Tensor, which is saved with its version.
    """
    if isinstance(mask, Tensor):
        saved: tuple = (mask,)
        out = wrap(kept(x._array, mask._array))
    else:
        saved = ()
        out = wrap(kept(x._array, mask))
    backward = lambda needs, grad, *saved: masked(grad, *(saved or (mask,)))  # noqa: E731
    record("MaskedFillBackward0", (x,), out, backward, saved)
    return out


def zeros_like(x: Tensor) -> Tensor:
    """Return zeros of the shape, dtype and memory format of ``x``: a gradient that is nowhere."""
    return wrap(np.zeros_like(x._array))


def _array(value: Any) -> Any:
    return value._array if isinstance(value, Tensor) else value


def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    """Return ``input`` where the condition is true, and ``other`` elsewhere.

    Parameters
    ----------
    condition : bool Tensor
    input, other : Tensors or numbers
        All three broadcast.  Without them: the indices of the true elements, a tensor an axis.

    Raises
    ------
    RuntimeError
        The condition is not of dtype bool, or the shapes do not broadcast.

    Examples
    --------
    >>> import convcore
    >>> x = convcore.tensor([-1.0, 2.0])
    >>> convcore.where(x > 0, x, 0.0)
    tensor([0., 2.])
    """
    check_arguments("where", condition=condition)
    mask = condition._array
    if input is None and other is None:
        return tuple([wrap(index) for index in np.nonzero(np.atleast_1d(mask))][: mask.ndim or 1])
    if mask.dtype.kind != "b":
        raise RuntimeError(
            f"where expected condition to be a boolean tensor, but got a tensor with "
            f"dtype {scalar_name(mask.dtype)}"
        )
    if input is None or other is None:
        raise hinted(
            TypeError(f"where(): missing {'input' if input is None else 'other'}"), hints.BOTH_SIDES
        )
    input, other = operand(input, "where"), operand(other, "where")
    a, b = _array(input), _array(other)
    dtype = result_numpy(a, b)
    shape = joint_shape(mask, a, b)
    a, b = (
        v.astype(dtype, copy=False) if isinstance(v, np.ndarray) else element(v, dtype)
        for v in (a, b)
    )
    try:
        out = wrap(np.asarray(np.where(mask, a, b)))
    except NoValuesError:
        out = wrap(of_elements(np.where, shape, mask, a, b))
    if mode.enabled:
        record(
            "WhereBackward0",
            (None, input, other),
            out,
            fitted(_where_backward, None, input, other),
            (condition,),
        )
    return out


def _where_backward(needs: tuple[bool, ...], grad: Tensor, condition: Tensor) -> tuple:
    return (
        None,
        masked(grad, condition) if needs[1] else None,
        masked(grad, ~condition._array) if needs[2] else None,
    )


_UNCLAMPED = "clamp is not supported for complex types"


@names_arguments
def clamp(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """Return the elements moved to the nearest value between ``min`` and ``max``.

    Parameters
    ----------
    input : Tensor
    min, max : numbers, Tensors that broadcast with input, or None
        One of them at least.  Where min > max the result is max.

    Raises
    ------
    RuntimeError
        Neither bound is given.

    Examples
    --------
    >>> import convcore
    >>> convcore.tensor([-1.0, 0.5, 2.0]).clamp(0, 1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        _check_both("min", min, "max", max)
        _check_both("max", max, "min", min)
        return _clamp_to_tensors(input, min, max)
    return _clamp(input, min, max, "ClampBackward1")


def _check_both(name: str, bound: Any, other: str, given: Any) -> None:
    """Raise TypeError for a number beside a Tensor with axes, which could not be one itself."""
    if bound is None or isinstance(bound, Tensor) or not given._array.ndim:
        return
    raise TypeError(
        f"clamp(): argument '{name}' must be Tensor where '{other}' is one, not {typename(bound)}"
    )


@names_arguments
def clamp_min(input: Tensor, min: Any) -> Tensor:
    """Return the larger of each element and ``min``, a number or a Tensor."""
    check_tensor("clamp_min", input)
    if isinstance(min, Tensor):
        return _clamp_to_tensors(input, min, None, "ClampMinBackward1")
    if min is None:
        number("clamp_min", "min", min)
    return _clamp(input, min, None, "ClampMinBackward0")


@names_arguments
def clamp_max(input: Tensor, max: Any) -> Tensor:
    """Return the smaller of each element and ``max``, a number or a Tensor."""
    check_tensor("clamp_max", input)
    if isinstance(max, Tensor):
        return _clamp_to_tensors(input, None, max, "ClampMaxBackward1")
    if max is None:
        number("clamp_max", "max", max)
    return _clamp(input, None, max, "ClampMaxBackward0")


def _clamp(x: Tensor, low: Any, high: Any, name: str) -> Tensor:
    refuse_complex(_UNCLAMPED, x, error=NotImplementedError)
    array = x._array
    low = None if low is None else checked_number("clamp", low, "min", True)
    high = None if high is None else checked_number("clamp", high, "max", True)
    if array.dtype.kind == "f":
        array = clipped(array, low, high)
    else:
        array = array if low is None else compute(np.maximum, array, low)
        array = array if high is None else compute(np.minimum, array, high)
    out = wrap(array)
    bounds = (low, high)
    if array.dtype.kind == "V":  # rounded, as NumPy rounds them beside float16
        bounds = tuple(None if one is None else _number(one, array.dtype) for one in bounds)
    backward = lambda needs, grad, x: (masked(grad, _inside(x._array, *bounds)),)  # noqa: E731
    if mode.enabled:
        record(name, (x,), out, fitted(backward, x), (x,))
        if array.dtype.kind == "f":
            a, b = -math.inf if low is None else low, math.inf if high is None else high
            if a <= b:
                describe(out, kernel=("clamp", a, b))
    return out


# From so many elements on np.clip is the faster one, although it is slow to call:
#     python -m timeit -s "import numpy as np; x = np.ones(1 << 14, 'f')" "np.clip(x, 0, np.inf)"
# against "np.maximum(x, 0)".
LARGE = 1 << 14


def clipped(array: np.ndarray, low: float | None, high: float | None) -> np.ndarray:
    """Return a floating-point array moved into [low, high]; None bounds nothing, NaN stays."""
    if array.size >= LARGE:
        low = -math.inf if low is None else low
        high = math.inf if high is None else high
        return of_each(lambda array: np.clip(array, low, high), array, warns=True)
    array = array if low is None else compute(np.maximum, array, low)
    return array if high is None else compute(np.minimum, array, high)


def _inside(array: np.ndarray, low: Any, high: Any) -> np.ndarray:
    """Return where ``low <= array <= high``; None bounds nothing."""
    if low is None:
        return array <= high
    return array >= low if high is None else (array >= low) & (array <= high)


def _clamp_to_tensors(x: Tensor, low: Any, high: Any, name: str = "ClampBackward0") -> Tensor:
    refuse_complex(_UNCLAMPED, x, error=NotImplementedError)
    for kernel, bound in (("maximum_cpu", low), ("minimum_cpu", high)):
        if isinstance(bound, Tensor):
            check_kind(kernel, bound, "fiubV")
    array = x._array
    if low is not None:
        array = compute(np.maximum, array, _array(low))
    if high is not None:
        array = compute(np.minimum, array, _array(high))
    out = wrap(array)
    if mode.enabled:
        record(
            name,
            (x, low, high),
            out,
            fitted(_clamp_to_tensors_backward, x, low, high),
            (x, low, high),
        )
    return out


def _clamp_to_tensors_backward(
    needs: tuple[bool, ...], grad: Tensor, x: Tensor, low: Any, high: Any
) -> tuple:
    a, least, most = x._array, _array(low), _array(high)
    at_low: Any = low is not None and a < least
    above: Any = high is not None and a > most
    if low is not None and high is not None:  # the upper bound has the last word
        at_low = at_low & (least < most)
        above = above | (most < least)
    return (
        masked(grad, _inside(a, least, most)) if needs[0] else None,
        masked(grad, at_low) if needs[1] else None,
        masked(grad, above) if needs[2] else None,
    )


def maximum(input: Tensor, other: Tensor) -> Tensor:
    """Return the larger of two tensors, element by element; NaN where either is.

    Where they are equal, each gets half of the gradient.
    """
    return _extreme(np.maximum, "MaximumBackward0", input, other, _halves(np.greater))


def minimum(input: Tensor, other: Tensor) -> Tensor:
    """Return the smaller of two tensors, element by element; NaN where either is.

    Where they are equal, each gets half of the gradient.
    """
    return _extreme(np.minimum, "MinimumBackward0", input, other, _halves(np.less))


def fmax(input: Tensor, other: Tensor) -> Tensor:
    """Return the larger of two tensors, element by element; where one is NaN, the other."""
    return _extreme(np.fmax, "FmaxBackward0", input, other, _all_or_none(np.greater_equal))


def fmin(input: Tensor, other: Tensor) -> Tensor:
    """Return the smaller of two tensors, element by element; where one is NaN, the other."""
    return _extreme(np.fmin, "FminBackward0", input, other, _all_or_none(np.less_equal))


def _extreme(ufunc: np.ufunc, name: str, x: Tensor, y: Tensor, backward: Callable) -> Tensor:
    check_tensors(ufunc.__name__, x, y)
    refuse_complex(f"{ufunc.__name__} not implemented for complex tensors.", x, y)
    out = wrap(compute(ufunc, x._array, y._array))
    if mode.enabled:
        record(name, (x, y), out, fitted(backward, x, y), (x, y))
    return out


def _halves(wins: np.ufunc) -> Callable:
    """Return the backward that gives the gradient to the one that wins, and halves it of equals."""

    def backward(needs: tuple[bool, ...], grad: Tensor, x: Tensor, y: Tensor) -> tuple:
        a, b = x._array, y._array
        half = mul(grad, wrap(np.where(a == b, 0.5, 1.0).astype(grad._array.dtype)))
        return (
            masked(half, ~wins(b, a)) if needs[0] else None,
            masked(half, ~wins(a, b)) if needs[1] else None,
        )

    return backward


def _all_or_none(wins: np.ufunc) -> Callable:
    """Return the backward that gives all of the gradient to the one that is taken."""

    def backward(needs: tuple[bool, ...], grad: Tensor, x: Tensor, y: Tensor) -> tuple:
        first = wins(x._array, y._array) | np.isnan(y._array)
        return (
            masked(grad, first) if needs[0] else None,
            masked(grad, ~first) if needs[1] else None,
        )

    return backward


def nan_to_num(
    input: Tensor, nan: float | None = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """Return the elements with NaN and the infinities replaced by numbers.

    Parameters
    ----------
    input : Tensor
    nan : number
    posinf, neginf : number or None
        None: the largest and the lowest number of the dtype.
    """
    check_tensor("nan_to_num", input)
    array = input._array
    for name, one in (("nan", nan), ("posinf", posinf), ("neginf", neginf)):
        if one is not None:
            number("nan_to_num", name, one)
    if array.dtype.kind not in INEXACT:
        return wrap(array.copy(order="K"))
    nan = 0.0 if nan is None else nan
    if array.dtype.kind == "V":
        return _wide_nan_to_num(input, nan, posinf, neginf)
    replaced = functools.partial(np.nan_to_num, nan=nan, posinf=posinf, neginf=neginf)
    out = wrap(of_each(replaced, array))
    record("NanToNumBackward0", (input,), out, _nan_to_num_backward, (input,))
    return out


def _wide_nan_to_num(x: Tensor, nan: float, posinf: float | None, neginf: float | None) -> Tensor:
    limits = finfo(x.dtype)
    posinf = limits.max if posinf is None else posinf
    return in_float32(nan_to_num)(x, nan, posinf, limits.min if neginf is None else neginf)


def _nan_to_num_backward(needs: tuple[bool, ...], grad: Tensor, x: Tensor) -> Tensor:
    return masked(grad, np.isfinite(x._array))


def _where(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """Return the tensor where the condition is true, and ``other`` elsewhere."""
    return where(condition, self, other)


_where.__qualname__ = "Tensor.where"  # which errors of calls say

clip = clamp

METHODS = {
    "clip_": in_place(clamp),
    "where": _where,
    **in_place_methods(clamp, clamp_max, clamp_min, nan_to_num),
}
