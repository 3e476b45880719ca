"""Operators on quantized tensors: quantize, dequantize, conv and matmul with exact sums.

A tensor that is quantized and dequantized has a straight-through gradient where values are not
clipped.  QuantizeLinear stores it in its result's ``straight``; DequantizeLinear adds it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import convcore
from convcore import Tensor
from convcore.autograd.grad_mode import is_grad_enabled
from convcore.onnx.operators.convolution import conv
from convcore.onnx.operators.elementwise import saturated
from convcore.onnx.operators.linear import product
from convcore.onnx.operators.registry import operator
from convcore.onnx.values import Value, array_of, dtype_of, value_of


def _along(parameter: np.ndarray, x: np.ndarray, axis: int, block: int) -> np.ndarray:
    """Return a scale or zero point in a shape that broadcasts to the tensor's."""
    if parameter.size == 1 and parameter.ndim <= 1:
        return parameter.reshape(())
    if block:
        wide = np.repeat(parameter, block, axis)
        return np.take(wide, range(x.shape[axis]), axis)
    shape = [1] * x.ndim
    shape[axis] = parameter.size
    return parameter.reshape(shape)


def _limits(dtype: np.dtype) -> tuple[float, float] | None:
    names = {"int4": (-8, 7), "uint4": (0, 15), "int2": (-2, 1), "uint2": (0, 3)}
    if dtype.kind in "iu" and dtype.isbuiltin == 1:
        return np.iinfo(dtype).min, np.iinfo(dtype).max
    return names.get(dtype.name)


def _rounded(x: np.ndarray, zero: np.ndarray, dtype: np.dtype, saturate: int = 1) -> np.ndarray:
    limits = _limits(dtype)
    if limits is None:  # a small float
        return (saturated(x, dtype) if saturate else x).astype(dtype)
    numbers = np.rint(x).astype(np.float64) + zero.astype(np.float64)
    return np.clip(numbers, *limits).astype(np.int64).astype(dtype)


@operator("QuantizeLinear")
def quantize_linear(
    x: Value,
    scale: Value,
    zero: Value = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    saturate: int = 1,
) -> Value:
    """Return x / scale rounded to even, plus the zero point, within the type's limits."""
    kind = dtype_of(output_dtype) if output_dtype else np.dtype(np.uint8)
    kind = kind if zero is None else array_of(zero).dtype
    array, steps = array_of(x), array_of(scale)
    axis = axis % max(array.ndim, 1)
    shift = np.zeros((), kind) if zero is None else array_of(zero)
    compute = np.float32 if array.dtype.itemsize <= 4 else np.float64
    quotient = array.astype(compute) / _along(steps.astype(compute), array, axis, block_size)
    shift = _along(shift, array, axis, block_size)
    y = value_of(_rounded(quotient, shift, kind, saturate))
    limits = _limits(kind)
    if limits and isinstance(y, Tensor) and x.requires_grad and is_grad_enabled():
        numbers = np.rint(quotient) + shift
        inside = value_of((limits[0] <= numbers) & (numbers <= limits[1]))
        straight = convcore.where(inside, x - x.detach(), 0)  # zeros that have x's gradient
        y.straight = straight  # type: ignore[attr-defined]
    return y


@operator("DequantizeLinear", folds=True)
def dequantize_linear(
    x: Value,
    scale: Value,
    zero: Value = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Value:
    """Return (x - zero point) * scale."""
    array, steps = array_of(x), array_of(scale)
    axis = axis % max(array.ndim, 1)
    numbers = array.astype(np.float32)
    if zero is not None:
        numbers = numbers - _along(array_of(zero).astype(np.float32), array, axis, block_size)
    result = numbers * _along(steps.astype(np.float32), array, axis, block_size)
    y = value_of(result.astype(dtype_of(output_dtype) if output_dtype else steps.dtype))
    straight = getattr(x, "straight", None)
    return y if straight is None else y + straight.to(y.dtype)


@operator("DynamicQuantizeLinear")
def dynamic_quantize_linear(x: Value) -> tuple[Value, Value, Value]:
    """Return x as uint8, and the scale and zero point that fit its range."""
    array = array_of(x)
    low, high = min(array.min(initial=0), 0), max(array.max(initial=0), 0)
    scale = np.float32((high - low) / 255)
    scale = scale if scale else np.float32(1)
    zero = np.uint8(np.clip(np.rint(-low / scale), 0, 255))
    quantized = np.clip(np.rint(array / scale) + zero, 0, 255).astype(np.uint8)
    return value_of(quantized), value_of(np.asarray(scale)), value_of(np.asarray(zero))


@operator("QLinearConv")
def qlinear_conv(
    x: Value,
    x_scale: Value,
    x_zero: Value,
    weight: Value,
    weight_scale: Value,
    weight_zero: Value,
    y_scale: Value,
    y_zero: Value,
    bias: Value = None,
    **options: Any,
) -> Value:
    """Return the convolution of quantized numbers, quantized."""
    y = conv(_integers(x, x_zero), _integers(weight, weight_zero), None, **options)
    column = [-1, *(1,) * (x.ndim - 2)]
    if bias is not None:
        y = y + bias.to(convcore.float64).reshape(column)
    scale = (x_scale.to(convcore.float64) * weight_scale.to(convcore.float64)) / y_scale.to(
        convcore.float64
    )
    scaled = y * (scale.reshape(column) if scale.numel() > 1 else scale.reshape([]))
    return value_of(_rounded(array_of(scaled), array_of(y_zero), array_of(y_zero).dtype))


def _integers(x: Value, zero: Value) -> Value:
    """Return quantized numbers minus their zero point, in float64."""
    shift = array_of(zero).astype(np.float64)
    array = array_of(x).astype(np.float64)
    return value_of(array - _along(shift, array, 0, 0))


@operator("QLinearMatMul")
def qlinear_matmul(
    a: Value,
    a_scale: Value,
    a_zero: Value,
    b: Value,
    b_scale: Value,
    b_zero: Value,
    y_scale: Value,
    y_zero: Value,
) -> Value:
    """Return the matrix product of quantized numbers, quantized."""
    y = convcore.matmul(_minus(a, _of_rows(a_zero)), _minus(b, b_zero))
    scale = array_of(_of_rows(a_scale)).astype(np.float64) * array_of(b_scale).astype(np.float64)
    scaled = array_of(y) * (scale / array_of(y_scale).astype(np.float64))
    return value_of(_rounded(scaled, array_of(y_zero), array_of(y_zero).dtype))


def _minus(x: Value, zero: Value) -> Value:
    array = array_of(x).astype(np.float64)
    return value_of(array if zero is None else array - array_of(zero).astype(np.float64))


@operator("MatMulInteger")
def matmul_integer(a: Value, b: Value, a_zero: Value = None, b_zero: Value = None) -> Value:
    """Return the matrix product of integers minus their zero points."""
    return product(_minus(a, _of_rows(a_zero)), _minus(b, b_zero)).to(convcore.int32)


def _of_rows(parameter: Value) -> Value:
    """Return the scale or zero point of a left matrix; a per-row vector becomes a column."""
    if parameter is None or parameter.ndim != 1 or parameter.numel() == 1:
        return parameter
    return parameter.unsqueeze(-1)
