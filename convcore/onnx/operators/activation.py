"""Activations, softmax and its kin."""

from __future__ import annotations

from typing import Any

from onnx import defs

import convcore
from convcore.functions.table import ROWS, Row
from convcore.nn import functional as F
from convcore.onnx.operators.registry import operator
from convcore.onnx.values import Value, is_differentiable


def _enter_row(name: str, row: Row) -> None:
    """Enter the operator that computes a function of the table."""

    @operator(name)
    def compute(x: Value, **attributes: Any) -> Value:
        arguments = {str(given): attributes[key] for key, given in row.attributes.items()}
        return row.function(x, **arguments)


_SPELLINGS = {schema.name.lower(): schema.name for schema in defs.get_all_schemas()}
for _name, _row in ROWS.items():
    if _operator := _row.operator or _SPELLINGS.get(_name.replace("_", "")):
        _enter_row(_operator, _row)  # those below take more than the row says


@operator("Relu")
def relu(x: Value) -> Value:
    """Return max(x, 0)."""
    return F.relu(x) if x.is_floating_point() else convcore.clamp(x, 0)


@operator("PRelu", weights=(1,))
def prelu(x: Value, slope: Value, *, version: int) -> Value:
    """Return x where it is positive, and slope * x elsewhere; the slope broadcasts."""
    if version < 7 and slope.ndim == 1 and x.ndim > 1:
        slope = slope.reshape([-1, *(1,) * (x.ndim - 2)])  # one a channel
    rest = (1,) * (x.ndim - 2)
    by_channel = x.ndim > 1 and ((x.shape[1], *rest), (1, x.shape[1], *rest))
    if by_channel and is_differentiable(x) and tuple(slope.shape) in by_channel:
        return F.prelu(x, slope.reshape(-1))
    return convcore.where(x < 0, slope * x, x)


@operator("ThresholdedRelu")
def thresholded_relu(x: Value, *, alpha: float) -> Value:
    """Return x where it is above alpha, else 0."""
    return convcore.where(x > alpha, x, convcore.zeros_like(x))


@operator("Celu")
def celu(x: Value, *, alpha: float) -> Value:
    """Return max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)."""
    if alpha > 0:
        return F.celu(x, alpha)
    return convcore.clamp(x, min=0) + convcore.clamp(alpha * convcore.expm1(x / alpha), max=0)


@operator("Selu")
def selu(x: Value, *, alpha: float, gamma: float) -> Value:
    """Return the scaled ELU."""
    return gamma * F.elu(x, alpha)


@operator("Gelu")
def gelu(x: Value, *, approximate: str = "none") -> Value:
    """Return x times the normal distribution's function of x."""
    return F.gelu(x, approximate=approximate)


@operator("HardSigmoid")
def hard_sigmoid(x: Value, *, alpha: float, beta: float) -> Value:
    """Return alpha * x + beta between 0 and 1."""
    return convcore.clamp(x * alpha + beta, 0, 1)


@operator("Swish")
def swish(x: Value, *, alpha: float = 1.0) -> Value:
    """Return x * sigmoid(alpha * x)."""
    return F.silu(x) if alpha == 1 else x * convcore.sigmoid(alpha * x)


@operator("Softplus")
def softplus(x: Value) -> Value:
    """Return log(1 + exp(x))."""
    return F.softplus(x)


@operator("Shrink")
def shrink(x: Value, *, bias: float, lambd: float) -> Value:
    """Return x moved towards 0 by bias where it is further than lambd, else 0."""
    zero = convcore.zeros_like(x)
    moved = convcore.where(x > lambd, x - bias, zero)
    return convcore.where(x < -lambd, x + bias, moved).to(x.dtype)


def _along(function: Any, x: Value, axis: int | None, version: int) -> Value:
    """Apply a function of rows along an axis; before opset 13, along all axes from it on."""
    if version >= 13:
        return function(x, -1 if axis is None else axis)
    axis = (1 if axis is None else axis) % max(x.ndim, 1)
    return function(x.flatten(axis) if axis else x.reshape(-1), -1).reshape(x.shape)


@operator("Softmax")
def softmax(x: Value, *, version: int, axis: int | None = None) -> Value:
    """Return exp(x) over its sum."""
    return _along(convcore.softmax, x, axis, version)


@operator("LogSoftmax")
def log_softmax(x: Value, *, version: int, axis: int | None = None) -> Value:
    """Return the logarithm of softmax."""
    return _along(convcore.log_softmax, x, axis, version)


@operator("Hardmax")
def hardmax(x: Value, *, version: int, axis: int | None = None) -> Value:
    """Return 1 at the first largest element, 0 elsewhere."""
    return _along(_hardmax, x, axis, version)


def _hardmax(x: Value, axis: int) -> Value:
    index = x.argmax(axis, keepdim=True)
    return convcore.zeros_like(x).scatter(axis, index, 1.0)
