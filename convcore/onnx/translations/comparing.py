"""Comparisons, logic, and choices by a condition."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import convcore
from convcore import Tensor
from convcore.onnx.errors import OnnxError
from convcore.onnx.translation import as_dtype, common, composes, operands, translates

if TYPE_CHECKING:
    from convcore.onnx.recording import Recorder

_COMPARISONS = {
    "Equal": ("eq",),
    "Greater": ("gt", "greater"),
    "GreaterOrEqual": ("ge", "greater_equal"),
    "Less": ("lt", "less"),
    "LessOrEqual": ("le", "less_equal"),
}


def _enter_comparison(op: str, names: tuple[str, ...]) -> None:
    @translates(*names)
    def comparison(r: Recorder, y: Any, *, input: Any, other: Any) -> list[str]:
        return r.node(op, common(r, input, other))


for _op, _names in _COMPARISONS.items():
    _enter_comparison(_op, _names)


@translates("ne", "not_equal")
def _ne(r: Recorder, y: Any, *, input: Any, other: Any) -> list[str]:
    return r.node("Not", r.node("Equal", common(r, input, other)))


def _truth(r: Recorder, value: Any) -> str:
    """Return the name of a value as bools."""
    return as_dtype(r, value, convcore.bool)


def _enter_logic(name: str, op: str) -> None:
    @translates(f"logical_{name}")
    def logic(r: Recorder, y: Any, *, input: Any, other: Any) -> list[str]:
        return r.node(op, [_truth(r, input), _truth(r, other)])

    @translates(f"bitwise_{name}")
    def bits(r: Recorder, y: Any, *, input: Any, other: Any) -> list[str]:
        if y.dtype is convcore.bool:
            return r.node(op, operands(r, y, input, other))
        if r.opset < 18:
            raise OnnxError(f"of {y.dtype}: Bitwise{op} is in opset 18 and later")
        return r.node(f"Bitwise{op}", operands(r, y, input, other))


for _name, _op in (("and", "And"), ("or", "Or"), ("xor", "Xor")):
    _enter_logic(_name, _op)


@translates("logical_not")
def _logical_not(r: Recorder, y: Any, *, input: Any) -> list[str]:
    return r.node("Not", [_truth(r, input)])


@translates("bitwise_not")
def _bitwise_not(r: Recorder, y: Any, *, input: Any) -> list[str]:
    if y.dtype is convcore.bool:
        return r.node("Not", [r.name(input)])
    if r.opset < 18:
        raise OnnxError(f"of {y.dtype}: BitwiseNot is in opset 18 and later")
    return r.node("BitwiseNot", [r.name(input)])


@translates("where")
def _where(
    r: Recorder, y: Any, *, condition: Any, input: Any = None, other: Any = None, **more: Any
) -> list[str]:
    if "self" in more:  # the method: where(condition, other) of a tensor
        input = more["self"]
    return r.node("Where", [r.name(condition), *operands(r, y, input, other)])


@translates("masked_fill")
def _masked_fill(r: Recorder, y: Any, *, input: Any, mask: Any, value: Any) -> list[str]:
    return r.node("Where", [r.name(mask), *operands(r, y, value, input)])


@translates("isnan")
def _isnan(r: Recorder, y: Any, *, input: Any) -> list[str]:
    return r.node("IsNaN", [as_dtype(r, input, _floating(input))])


def _floating(input: Tensor) -> Any:
    return input.dtype if input.is_floating_point() else convcore.float32


@translates("isinf")
def _isinf(r: Recorder, y: Any, *, input: Any) -> list[str]:
    return r.node("IsInf", [as_dtype(r, input, _floating(input))])


@composes("isfinite")
def _isfinite(*, input: Any) -> Any:
    return ~(input.isnan() | input.isinf())


@composes("nan_to_num")
def _nan_to_num(*, input: Any, nan: Any, posinf: Any, neginf: Any) -> Any:
    if not input.is_floating_point():
        return input * 1
    limits = convcore.finfo(input.dtype)
    high, low = limits.max if posinf is None else posinf, limits.min if neginf is None else neginf
    x = input.masked_fill(input.isnan(), 0.0 if nan is None else nan)
    return x.masked_fill(input == math.inf, high).masked_fill(input == -math.inf, low)


@composes("isclose")
def _isclose(*, input: Any, other: Any, rtol: float, atol: float, equal_nan: bool) -> Any:
    near = (input - other).abs() <= atol + rtol * other.abs()
    near = (input == other) | (near & other.isfinite())
    return near | (input.isnan() & other.isnan()) if equal_nan else near
