"""Signs, exponents and neighbours of floating-point numbers, and common divisors of integers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, scalar_name, wrap
from convcore._tensor.dtypes import FLOATING, common, result_numpy
from convcore.autograd.grad_mode import mode
from convcore.autograd.node import record, record_without_derivative
from convcore.functions._support.arguments import check_kind, check_tensor, check_tensors
from convcore.functions._support.dispatch import flat_in, of_each
from convcore.functions._support.errstate import ignore_errstate
from convcore.functions._support.in_place import in_place_methods
from convcore.functions.arithmetic import compute, mul, operand, sub
from convcore.functions.broadcast import cast, fitted
from convcore.functions.elementwise import _as_float, exp2, pow, sigmoid
from convcore.functions.in_float32 import in_float32
from convcore.functions.order import _return_type
from convcore.functions.rounding import trunc

__all__ = [
    "conj_physical",
    "copysign",
    "fix",
    "float_power",
    "frexp",
    "gcd",
    "heaviside",
    "is_conj",
    "is_neg",
    "is_same_size",
    "isneginf",
    "isposinf",
    "isreal",
    "lcm",
    "ldexp",
    "logaddexp2",
    "nextafter",
    "resolve_conj",
    "resolve_neg",
    "signbit",
]

_FREXP = _return_type("frexp", "mantissa", "exponent")


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


def heaviside(input: Tensor, values: Tensor) -> Tensor:
    """Return 0 for negative elements, 1 for positive ones, ``values`` for 0; no derivative."""
    check_tensors("heaviside", input, values)
    if input._array.dtype != values._array.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    if input._array.dtype.kind == "c":
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    dtype = input._array.dtype
    array = input._array.astype(float)
    array[np.isnan(array)] = -1  # PyTorch gives 0 there: NaN is not above 0
    out = wrap(compute(np.heaviside, array, values._array).astype(dtype))
    record_without_derivative("heaviside", (input, values), out)
    return out


def isposinf(input: Tensor) -> Tensor:
    """Return where the elements are plus infinity."""
    return _is_infinity("isposinf", input, math.inf)


def isneginf(input: Tensor) -> Tensor:
    """Return where the elements are minus infinity."""
    return _is_infinity("isneginf", input, -math.inf)


def _is_infinity(function: str, x: Tensor, value: float) -> Tensor:
    check_tensor(function, x)
    if x._array.dtype.kind == "c":
        raise RuntimeError(f"{function} does not support complex inputs.")
    return wrap(of_each(lambda array: array == value, x._array))


# Exponents and neighbours


@in_float32
def frexp(input: Tensor) -> Any:
    """Return (mantissa, exponent): input = mantissa * 2^exponent, mantissas from [0.5, 1)."""
    check_tensor("frexp", input)
    if input._array.dtype.kind != "f":
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    mantissa, exponent = np.frexp(input._array)
    out = _FREXP(wrap(np.asarray(mantissa)), wrap(np.asarray(exponent, np.int32)))
    if mode.enabled:
        record("FrexpBackward0", (input,), tuple(out), _frexp_backward, (out[1],))
    return out


def _frexp_backward(needs: tuple[bool, ...], grads: tuple, exponent: Tensor) -> Tensor | None:
    if grads[0] is None:
        return None
    powers = np.ldexp(np.ones((), grads[0]._array.dtype), -exponent._array)
    return mul(grads[0], wrap(np.asarray(powers, grads[0]._array.dtype)))


def ldexp(input: Tensor, other: Tensor) -> Tensor:
    """Return input * 2^other, element by element."""
    check_tensors("ldexp", input, other)
    dtype = common(input._array, other._array)
    if dtype == np.float64:
        other = cast(other, dtype)
    out = input
    for part in _halves(other):  # 2^200 is beyond float32 where the product need not be
        out = mul(out, exp2(part))
    return cast(out, dtype) if dtype.kind in FLOATING else out


def _halves(exponent: Tensor) -> tuple[Tensor, ...]:
    """Return two addends of an exponent, of which the first is whole; others than numbers alone."""
    if exponent._array.dtype.kind in "bc":
        return (exponent,)
    half = wrap(of_each(_whole_half, exponent._array))
    return half, sub(exponent, half)


def _whole_half(array: np.ndarray) -> np.ndarray:
    # Finite also where the exponent is not: nothing can be subtracted from infinity.
    return np.trunc(np.clip(array / 2, -2000, 2000)).astype(array.dtype)


@names_arguments
def float_power(input: Any, exponent: Any) -> Tensor:
    """Return input to the power of exponent, computed in float64, or in complex128."""
    wide = [_double(operand(one, "float_power()")) for one in (input, exponent)]
    return pow(*wide)


def _double(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value if isinstance(value, complex) else float(value)
    return cast(value, np.result_type(value._array.dtype, np.float64))


def nextafter(input: Tensor, other: Tensor) -> Tensor:
    """Return the next number after each element towards another; no derivative."""
    check_tensors("nextafter", input, other)
    if result_numpy(input._array, other._array).kind not in FLOATING:
        check_kind("nextafter_cpu", input, "f")
    out = wrap(compute(np.nextafter, input._array, other._array))
    record_without_derivative("nextafter", (input, other), out)
    return out


@in_float32
def logaddexp2(input: Tensor, other: Tensor) -> Tensor:
    """Return log2(2^input + 2^other), element by element, without overflow."""
    check_tensors("logaddexp2", input, other)
    check_kind("logaddexp2_cpu", input, "f", other)
    out = wrap(compute(np.logaddexp2, input._array, other._array))
    if mode.enabled:
        backward = fitted(_logaddexp2_backward, input, other)
        record("Logaddexp2Backward0", (input, other), out, backward, (input, other))
    return out


def _logaddexp2_backward(needs: tuple[bool, ...], grad: Tensor, x: Tensor, y: Tensor) -> tuple:
    share = sigmoid(mul(sub(x, y), math.log(2)))
    return mul(grad, share) if needs[0] else None, mul(grad, 1 - share) if needs[1] else None


# Integers


def gcd(input: Tensor, other: Tensor) -> Tensor:
    """Return the greatest common divisor of integers, element by element."""
    return _of_integers("gcd", np.gcd, input, other)


def lcm(input: Tensor, other: Tensor) -> Tensor:
    """Return the least common multiple of integers, element by element."""
    return _of_integers("lcm", np.lcm, input, other)


def _of_integers(function: str, ufunc: np.ufunc, x: Tensor, y: Tensor) -> Tensor:
    check_tensors(function, x, y)
    dtype = result_numpy(x, y)
    if dtype.kind not in "iu":
        name = scalar_name(dtype)
        raise NotImplementedError(f"\"{function}_cpu\" not implemented for '{name}'")
    return wrap(compute(ufunc, x._array, y._array))


# Names for what is never lazy here


def conj_physical(input: Tensor) -> Tensor:
    """Return the complex conjugate of each element; real numbers as they are."""
    check_tensor("conj_physical", input)
    return input.conj()


def resolve_conj(input: Tensor) -> Tensor:
    """Return the tensor itself: conjugates are computed at once."""
    check_tensor("resolve_conj", input)
    return input


def resolve_neg(input: Tensor) -> Tensor:
    """Return the tensor itself: signs are computed at once."""
    check_tensor("resolve_neg", input)
    return input


def is_conj(input: Tensor) -> bool:
    """Return False: conjugates are computed at once."""
    check_tensor("is_conj", input)
    return False


def is_neg(input: Tensor) -> bool:
    """Return False: signs are computed at once."""
    check_tensor("is_neg", input)
    return False


def _is_negative(array: np.ndarray) -> np.ndarray:
    return array < 0


def isreal(input: Tensor) -> Tensor:
    """Return where the imaginary part is 0."""
    check_tensor("isreal", input)
    return wrap(of_each(np.isreal, input._array))


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have the same shape."""
    check_tensors("is_same_size", input, other)
    return input._array.shape == other._array.shape


fix = trunc

METHODS = {
    **in_place_methods(copysign, float_power, gcd, heaviside, lcm, ldexp, nextafter),
    "conj_physical_": in_place_methods(conj_physical)["conj_physical_"],
    "fix_": in_place_methods(trunc)["trunc_"],
}
