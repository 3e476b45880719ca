"""Signs and neighbours of floating-point numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, wrap
from convcore._tensor.dtypes import FLOATING, common, result_numpy
from convcore.autograd.grad_mode import mode
from convcore.autograd.node import record, record_without_derivative
from convcore.functions._support.arguments import check_kind, check_tensor, check_tensors
from convcore.functions._support.dispatch import flat_in, of_each
from convcore.functions._support.errstate import ignore_errstate
from convcore.functions._support.in_place import in_place_methods
from convcore.functions.elementwise.arithmetic import compute, mul, operand
from convcore.functions.elementwise.elementwise import _as_float
from convcore.functions.elementwise.rounding import trunc
from convcore.functions.shapes.broadcast import fitted

__all__ = ["copysign", "fix", "nextafter", "resolve_conj", "resolve_neg", "signbit"]


# Signs


def signbit(input: Tensor) -> Tensor:
    """Return where the elements are negative, -0.0 among them."""
    check_tensor("signbit", input)
    array = input._array
    if array.dtype.kind == "c":
        raise NotImplementedError("signbit is not implemented for complex tensors.")
    return wrap(of_each(np.signbit if array.dtype.kind in "fV" else _is_negative, array))


@names_arguments
def copysign(input: Tensor, other: Any) -> Tensor:
    """Return the size of each element with the sign of another, a Tensor's or a number."""
    check_tensor("copysign", input)
    y = operand(other, "copysign()")
    a, b = input._array, y._array if isinstance(y, Tensor) else y
    if common(a, b).kind not in "fcV":
        a = _as_float(a)
    out = wrap(compute(np.copysign, a, b))
    if mode.enabled:
        backward = fitted(_copysign_backward, input, y)
        record(f"CopysignBackward{int(y is not other)}", (input, y), out, backward, (input, out))
    return out


def _copysign_backward(needs: tuple[bool, ...], grad: Tensor, x: Tensor, y: Tensor) -> tuple:
    a, b = x._array, y._array
    ratio = np.where(a == 0, 0, ignore_errstate(np.true_divide, b, a))  # 1, -1, or NaN of NaN
    slope = mul(grad, wrap(np.asarray(ratio, grad._array.dtype))) if needs[0] else None
    return slope if slope is None else flat_in(slope, x), mul(grad, 0) if needs[1] else None


# Exponents and neighbours


def nextafter(input: Tensor, other: Tensor) -> Tensor:
    """Return the next number after each element towards another; no derivative."""
    check_tensors("nextafter", input, other)
    if result_numpy(input._array, other._array).kind not in FLOATING:
        check_kind("nextafter_cpu", input, "f")
    out = wrap(compute(np.nextafter, input._array, other._array))
    record_without_derivative("nextafter", (input, other), out)
    return out


# Names for what is never lazy here


def resolve_conj(input: Tensor) -> Tensor:
    """Return the tensor itself: conjugates are computed at once."""
    check_tensor("resolve_conj", input)
    return input


def resolve_neg(input: Tensor) -> Tensor:
    """Return the tensor itself: signs are computed at once."""
    check_tensor("resolve_neg", input)
    return input


def _is_negative(array: np.ndarray) -> np.ndarray:
    return array < 0


fix = trunc

METHODS = {**in_place_methods(copysign, nextafter), "fix_": in_place_methods(trunc)["trunc_"]}
