"""Rounding (floor, ceil, round, trunc), floor division and remainders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, wrap
from convcore.autograd.grad_mode import mode
from convcore.autograd.node import record
from convcore.engine.integers import as_int
from convcore.functions._support.arguments import check_kind, check_tensor
from convcore.functions._support.dispatch import of_each
from convcore.functions._support.errstate import ignore_errstate
from convcore.functions._support.in_place import in_place, in_place_methods
from convcore.functions.elementwise.arithmetic import compute, div, mul, neg, operand
from convcore.functions.elementwise.elementwise import Unary, named, step
from convcore.functions.shapes.broadcast import fitted

__all__ = ["ceil", "floor", "floor_divide", "fmod", "frac", "remainder", "round", "trunc"]


def _rounded(ufunc: Callable) -> Callable:
    return lambda array: ufunc(array) if array.dtype.kind in "fV" else array.copy(order="K")


def _to_integers(ufunc: Callable, does: str) -> Unary:
    name = ufunc.__name__

    def function(input: Tensor) -> Tensor:
        if isinstance(input, Tensor) and input._array.dtype.kind == "c":
            raise NotImplementedError(f"{name} is not supported for complex inputs")
        return step(f"{name.title()}Backward0", _rounded(ufunc), input)

    return named(function, name, does)


floor = _to_integers(np.floor, "the largest integer that is not above each element")


ceil = _to_integers(np.ceil, "the smallest integer that is not below each element")


trunc = _to_integers(np.trunc, "each element without its fraction")


@names_arguments
def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """Return each element rounded to ``decimals`` places, halves to the even neighbour.

    Integers stay as they are; a NotImplementedError refuses to round them to places.
    """
    decimals = as_int(decimals)
    check_tensor("round", input)
    if decimals == 0:
        check_kind("round_vml_cpu", input, "fViub")
        return step("RoundBackward0", _rounded(np.rint), input)
    if not -400 < decimals < 400:
        raise RuntimeError(f"round(): argument 'decimals' must be an int below 400, not {decimals}")
    check_kind("round_cpu", input, "fV")
    scale = 10.0 ** (decimals if decimals > 0 else -decimals)

    def at_decimals(array: np.ndarray) -> np.ndarray:
        wide = array.astype(np.float32) if array.itemsize == 2 else array
        factor = wide.dtype.type(scale)
        if decimals > 0:
            places = np.rint(wide * factor) / factor
        else:
            places = np.rint(wide / factor) * factor
        return places.astype(array.dtype, copy=False)

    return step("RoundBackward1", at_decimals, input)


def frac(input: Tensor) -> Tensor:
    """Return the fraction of each element, with its sign."""
    check_tensor("frac", input)
    array = input._array
    out = wrap(of_each(lambda array: np.subtract(array, np.trunc(array)), array, warns=True))
    record("FracBackward0", (input,), out, lambda needs, grad: grad)
    return out


def remainder(input: Any, other: Any) -> Tensor:
    """Return input - floor(input / other) * other: Python's %, with the sign of ``other``.

    Raises
    ------
    RuntimeError
        Integers are divided by zero.
    """
    return _remains(np.remainder, np.floor_divide, "Remainder", input, other)


def fmod(input: Tensor, other: Any) -> Tensor:
    """Return input - trunc(input / other) * other: C's fmod, with the sign of ``input``.

    Raises
    ------
    RuntimeError
        Integers are divided by zero.
    """
    return _remains(np.fmod, _trunc_divide, "Fmod", input, other)


def _trunc_divide(a: Any, b: np.ndarray) -> np.ndarray:
    return np.trunc(np.true_divide(a, b))


def _remains(ufunc: np.ufunc, quotient: Callable, name: str, x: Any, y: Any) -> Tensor:
    x, y = operand(x, "%"), operand(y, "%")
    a = x._array if isinstance(x, Tensor) else x
    b = y._array if isinstance(y, Tensor) else y
    out = wrap(compute(ufunc, a, b))
    if out._array.dtype.kind in "iu" and out._array.size and not np.all(b):
        raise RuntimeError("ZeroDivisionError")
    if not mode.enabled:
        return out

    def backward(needs: tuple[bool, ...], grad: Tensor, x: Any, y: Any) -> tuple:
        grad_y = None
        if needs[1]:
            a = x._array if isinstance(x, Tensor) else x
            count = ignore_errstate(quotient, a, y._array)
            grad_y = neg(mul(grad, wrap(np.asarray(count, grad._array.dtype))))
        return grad if needs[0] else None, grad_y

    if isinstance(y, Tensor):
        record(f"{name}Backward1", (x, y), out, fitted(backward, x, y), (x, y))
    else:
        passed = fitted(lambda needs, grad: (grad,), x)
        record(f"{name}Backward0", (x,), out, passed)
    return out


def floor_divide(input: Any, other: Any) -> Tensor:
    """Return floor(input / other); the gradient is zero."""
    return div(input, other, rounding_mode="floor")


METHODS = {
    "__floordiv__": floor_divide,
    "__ifloordiv__": in_place(floor_divide),
    "__imod__": in_place(remainder),
    "__mod__": remainder,
    "__rfloordiv__": lambda self, other: floor_divide(other, self),
    "__rmod__": lambda self, other: remainder(other, self),
    **in_place_methods(ceil, floor, floor_divide, fmod, frac, remainder, round, trunc),
}
