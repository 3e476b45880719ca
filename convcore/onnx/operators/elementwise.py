"""Elementwise operators: arithmetic, comparisons, logic, bits, choice, conversion."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from scipy import special

import convcore
from convcore import Tensor
from convcore.engine.runtime.errstate import quiet
from convcore.onnx.operators.registry import operator
from convcore.onnx.values import (
    Value,
    array_of,
    axis_of,
    by_numpy,
    dtype_of,
    is_differentiable,
    value_of,
)


def _either(function: Callable[..., Any], numpy: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that is differentiable for floats, and NumPy's for all else."""
    on_arrays = by_numpy(numpy)

    def compute(*values: Value) -> Value:
        if all(map(is_differentiable, values)):
            return function(*values)
        return on_arrays(*values)

    return compute


def _aligned(a: Value, b: Value, broadcast: int, axis: int | None) -> Value:
    """Return b as before opset 7: its axes are those of a from ``axis`` on."""
    if not broadcast or axis is None:
        return b
    start = axis_of(axis, a.ndim)
    return b.reshape([*b.shape, *(1,) * (a.ndim - start - b.ndim)])


def _quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a / b, rounded to zero where they are integers."""
    if a.dtype.kind not in "iu":
        return np.true_divide(a, b)
    if a.dtype.kind == "u":
        return np.floor_divide(a, b)
    floor = np.floor_divide(a, b)
    return floor + ((floor < 0) & (floor * b != a)).astype(a.dtype)


def _power(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.power(a, b).astype(a.dtype)


def _sign(x: Value) -> Value:
    """Return the sign of each element, and NaN for NaN."""
    return convcore.where(x == x, convcore.sign(x), x)


_UNARY: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "Abs": (convcore.abs, np.abs),
    "Acos": (convcore.acos, np.arccos),
    "Acosh": (convcore.acosh, np.arccosh),
    "Asin": (convcore.asin, np.arcsin),
    "Asinh": (convcore.asinh, np.arcsinh),
    "Atan": (convcore.atan, np.arctan),
    "Atanh": (convcore.atanh, np.arctanh),
    "BitwiseNot": (convcore.bitwise_not, np.invert),
    "Ceil": (convcore.ceil, np.ceil),
    "Cos": (convcore.cos, np.cos),
    "Cosh": (convcore.cosh, np.cosh),
    "Erf": (convcore.erf, special.erf),
    "Exp": (convcore.exp, np.exp),
    "Floor": (convcore.floor, np.floor),
    "IsNaN": (convcore.isnan, np.isnan),
    "Log": (convcore.log, np.log),
    "Neg": (convcore.neg, np.negative),
    "Not": (convcore.logical_not, np.logical_not),
    "Reciprocal": (convcore.reciprocal, np.reciprocal),
    "Round": (convcore.round, np.round),
    "Sign": (_sign, np.sign),
    "Sin": (convcore.sin, np.sin),
    "Sinh": (convcore.sinh, np.sinh),
    "Sqrt": (convcore.sqrt, np.sqrt),
    "Tan": (convcore.tan, np.tan),
    "Tanh": (convcore.tanh, np.tanh),
}

_BINARY: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "Add": (convcore.add, np.add),
    "Div": (convcore.div, _quotient),
    "Mul": (convcore.mul, np.multiply),
    "Sub": (convcore.sub, np.subtract),
}

_OF_ARRAYS: dict[str, Callable[..., Any]] = {
    "And": np.logical_and,
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
    "Equal": np.equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Or": np.logical_or,
    "Xor": np.logical_xor,
}


def _enter_unary(name: str, compute: Callable[..., Any]) -> None:
    @operator(name, folds=True)
    def unary(x: Value) -> Value:
        return compute(x)


def _enter_binary(name: str, compute: Callable[..., Any], weights: tuple[int, ...]) -> None:
    @operator(name, weights=weights, folds=True)
    def binary(a: Value, b: Value, *, broadcast: int = 0, axis: int | None = None) -> Value:
        return compute(a, _aligned(a, b, broadcast, axis))


for _name, _functions in _UNARY.items():
    _enter_unary(_name, _either(*_functions))


def _pow(a: Value, b: Value) -> Value:
    """Return a to the power b, in the dtype of a."""
    if is_differentiable(a) and isinstance(b, Tensor) and not b.is_complex():
        exponent = b if is_differentiable(b) else b.to(a.dtype)
        return convcore.pow(a, exponent).to(a.dtype)
    return by_numpy(_power)(a, b)


_enter_binary("Pow", _pow, (0, 1))
for _name, _functions in _BINARY.items():
    _enter_binary(_name, _either(*_functions), (0, 1))
for _name, _function in _OF_ARRAYS.items():
    _enter_binary(_name, by_numpy(_function), ())


@operator("Mod")
def mod(a: Value, b: Value, *, fmod: int = 0) -> Value:
    """Return the remainder: with the divisor's sign, or the dividend's (fmod)."""
    compute = (convcore.fmod, np.fmod) if fmod else (convcore.remainder, np.mod)
    return _either(*compute)(a, b)


@operator("BitShift")
def bit_shift(a: Value, b: Value, *, direction: str) -> Value:
    """Return bits shifted to the left or to the right."""
    return by_numpy(np.left_shift if direction == "LEFT" else np.right_shift)(a, b)


@operator("IsInf")
def is_inf(x: Value, *, detect_negative: int = 1, detect_positive: int = 1) -> Value:
    """Return where infinities of the wanted signs are."""

    def found(x: np.ndarray) -> np.ndarray:
        signs = (x < 0) & bool(detect_negative) | (x > 0) & bool(detect_positive)
        return np.isinf(x) & signs

    return by_numpy(found)(x)


def _of_many(name: str, compute: Callable[[Value, Value], Value]) -> None:
    @operator(name)
    def many(*values: Value) -> Value:
        return reduce(compute, values)


_of_many("Max", _either(convcore.maximum, np.maximum))
_of_many("Min", _either(convcore.minimum, np.minimum))
_of_many("Sum", _either(convcore.add, np.add))


@operator("Mean")
def mean(*values: Value) -> Value:
    """Return the mean of inputs, element by element."""
    return reduce(convcore.add, values) / len(values)


@operator("Where")
def where(condition: Value, a: Value, b: Value) -> Value:
    """Return an element of one or of the other."""
    if is_differentiable(a) and is_differentiable(b):
        return convcore.where(condition, a, b)
    return by_numpy(np.where)(condition, a, b)


@operator("Clip")
def clip(
    x: Value,
    low: Value = None,
    high: Value = None,
    *,
    min: float | None = None,
    max: float | None = None,
) -> Value:
    """Return elements no less than one bound and no more than another."""
    low, high = min if low is None else low, max if high is None else high
    if low is None and high is None:
        return x
    if is_differentiable(x):
        numbers = [None if each is None else array_of(each).item() for each in (low, high)]
        return convcore.clamp(x, *numbers)
    bounds = [None if each is None else array_of(each) for each in (low, high)]
    below = by_numpy(np.maximum)(x, value_of(bounds[0])) if bounds[0] is not None else x
    return by_numpy(np.minimum)(below, value_of(bounds[1])) if bounds[1] is not None else below


@operator("Identity", folds=True)
def identity(x: Value) -> Value:
    """Return the input."""
    return x


@operator("Cast", folds=True)
def cast(x: Value, *, to: int | str, saturate: int = 1, round_mode: str = "up") -> Value:
    """Return elements as another type."""
    if isinstance(to, str):  # opset 1
        to = onnx.TensorProto.DataType.Value(to)
    return _converted(x, dtype_of(int(to)), saturate)


@operator("BitCast")
def bit_cast(x: Value, *, to: int) -> Value:
    """Return the same bits read as another type of the same size."""
    return value_of(array_of(x).view(dtype_of(to)))


@operator("CastLike")
def cast_like(x: Value, like: Value, *, saturate: int = 1, round_mode: str = "up") -> Value:
    """Return elements as the type of another input."""
    return _converted(x, array_of(like).dtype, saturate)


def _converted(x: Value, dtype: np.dtype, saturate: int = 1) -> Value:
    target = getattr(convcore, dtype.name, None) if dtype.kind in "fc" else None
    if is_differentiable(x) and isinstance(target, convcore.dtype):
        return x.to(target)
    array = array_of(x)
    if array.dtype == dtype:
        return x
    if dtype.kind in "OUST":
        return np.array([_text(each) for each in array.ravel()], object).reshape(array.shape)
    if array.dtype.kind in "OUST":
        number = int if dtype.kind in "iu" else float
        array = np.array([number(each) for each in array.ravel()]).reshape(array.shape)
    if saturate and dtype.name.startswith("float8") and "e8m0" not in dtype.name:
        array = saturated(array, dtype)
    return value_of(quiet(array.astype, dtype))


def saturated(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return floats no further from 0 than a small float type reaches; NaN stays."""
    largest = float(ml_dtypes.finfo(dtype).max)
    return np.clip(array.astype(np.float32), -largest, largest)


def _text(number: Any) -> str:
    if isinstance(number, np.floating) and np.isfinite(number):
        return np.format_float_positional(number, trim="-")
    return str(number).replace("nan", "NaN").replace("inf", "INF")
