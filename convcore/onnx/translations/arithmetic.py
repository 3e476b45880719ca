"""Sums, products, quotients and bounds of two or three operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import convcore
from convcore import Tensor
from convcore.onnx.errors import OnnxError
from convcore.onnx.translation import composes, operands, translates

if TYPE_CHECKING:
    from convcore.onnx.recording import Recorder


@translates("pow")
def _pow(r: Recorder, y: Any, *, input: Any, exponent: Any) -> list[str]:
    return r.node("Pow", operands(r, y, input, exponent))


@translates("square")
def _square(r: Recorder, y: Any, *, input: Any) -> list[str]:
    return r.node("Mul", [r.name(input), r.name(input)])


@translates("maximum")
def _maximum(r: Recorder, y: Any, *, input: Any, other: Any) -> list[str]:
    return r.node("Max", operands(r, y, input, other))


@translates("minimum")
def _minimum(r: Recorder, y: Any, *, input: Any, other: Any) -> list[str]:
    return r.node("Min", operands(r, y, input, other))


def _enter_sum(names: tuple[str, ...], op: str) -> None:
    @translates(*names)
    def total(
        r: Recorder, y: Any, *, input: Any, other: Any, alpha: Any = 1, older: tuple = ()
    ) -> list[str]:
        if older:
            raise OnnxError("with alpha in the second place")
        a, b = operands(r, y, input, other)
        if alpha != 1:
            (b,) = r.node("Mul", [b, r.number(alpha, y)])
        # Sums of bools are bools.
        return r.node("Or" if y.dtype is convcore.bool else op, [a, b])


_enter_sum(("add",), "Add")
_enter_sum(("sub", "subtract"), "Sub")


@translates("rsub")
def _rsub(r: Recorder, y: Any, *, input: Any, other: Any, alpha: Any = 1) -> list[str]:
    a, b = operands(r, y, input, other)
    if alpha != 1:
        (a,) = r.node("Mul", [a, r.number(alpha, y)])
    return r.node("Sub", [b, a])


@translates("mul", "multiply")
def _mul(r: Recorder, y: Any, *, input: Any, other: Any) -> list[str]:
    # Mul has no kernel for bools.
    return r.node("And" if y.dtype is convcore.bool else "Mul", operands(r, y, input, other))


@translates("div", "divide", "true_divide")
def _div(r: Recorder, y: Any, *, input: Any, other: Any, rounding_mode: Any = None) -> list[str]:
    quotient = r.node("Div", operands(r, y, input, other))
    if rounding_mode is None:
        return quotient
    if rounding_mode == "floor":
        with r.composing():
            return [r.name(convcore.floor_divide(input, other))]
    if not y.is_floating_point():
        return quotient  # of integers, which Div rounds towards 0
    (size,) = r.node("Floor", r.node("Abs", quotient))
    return r.node("Mul", [size, *r.node("Sign", quotient)])


@translates("floor_divide")
def _floor_divide(r: Recorder, y: Any, *, input: Any, other: Any) -> list[str]:
    a, b = operands(r, y, input, other)
    if y.is_floating_point():
        return r.node("Floor", r.node("Div", [a, b]))
    rest = r.node("Mod", [a, b])  # with the sign of b
    return r.node("Div", [*r.node("Sub", [a, *rest]), b])


@translates("remainder")
def _remainder(r: Recorder, y: Any, *, input: Any, other: Any) -> list[str]:
    a, b = operands(r, y, input, other)
    if not y.is_floating_point():
        return r.node("Mod", [a, b])
    whole = r.node("Floor", r.node("Div", [a, b]))
    return r.node("Sub", [a, *r.node("Mul", [*whole, b])])


@translates("fmod")
def _fmod(r: Recorder, y: Any, *, input: Any, other: Any) -> list[str]:
    return r.node("Mod", operands(r, y, input, other), fmod=1)


def _enter_turned(name: str, function: Callable[..., list[str]]) -> None:
    """Enter what Python calls for ``number / tensor``, whose first operand is the second one."""

    @translates(f"r{name}")
    def turned(r: Recorder, y: Any, /, **both: Any) -> list[str]:
        tensor, number = both.values()
        return function(r, y, input=number, other=tensor)


_enter_turned("div", _div)
_enter_turned("floor_divide", _floor_divide)
_enter_turned("remainder", _remainder)


@translates("rpow")
def _rpow(r: Recorder, y: Any, /, **both: Any) -> list[str]:
    tensor, number = both.values()
    return r.node("Pow", operands(r, y, number, tensor))


# --- bounds --------------------------------------------------------------------------------------


@translates("clamp", "clip")
def _clamp(r: Recorder, y: Any, *, input: Any, min: Any = None, max: Any = None) -> list[str]:
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        names = operands(r, y, input, input)[:1]
        for op, bound in (("Max", min), ("Min", max)):
            if bound is not None:
                names = r.node(op, [*names, *operands(r, y, bound, input)[:1]])
        return names
    bounds = ["" if each is None else r.number(each, y) for each in (min, max)]
    return r.node("Clip", [*operands(r, y, input, input)[:1], *bounds])


@composes("clamp_min")
def _clamp_min(*, input: Any, min: Any) -> Any:
    return input.clamp(min=min)


@composes("clamp_max")
def _clamp_max(*, input: Any, max: Any) -> Any:
    return input.clamp(max=max)


# --- of three operands and more ------------------------------------------------------------------


@composes("lerp")
def _lerp(*, input: Any, end: Any, weight: Any) -> Any:
    return input + weight * (end - input)


@composes("addcmul")
def _addcmul(*, input: Any, tensor1: Any, tensor2: Any, value: Any, **_: Any) -> Any:
    return input + tensor1 * tensor2 * value


@composes("addcdiv")
def _addcdiv(*, input: Any, tensor1: Any, tensor2: Any, value: Any, **_: Any) -> Any:
    return input + tensor1 / tensor2 * value


@composes("hypot")
def _hypot(*, input: Any, other: Any) -> Any:
    return (input * input + other * other).sqrt()


@composes("logaddexp")
def _logaddexp(*, input: Any, other: Any) -> Any:
    most = convcore.maximum(input, other)
    return most + (-(input - other).abs()).exp().log1p()


@composes("xlogy")
def _xlogy(*, input: Any, other: Any) -> Any:
    return convcore.where(input == 0, 0.0, input * other.log())


@composes("atan2", "arctan2")
def _atan2(*, input: Any, other: Any) -> Any:
    # Of 0 and 0 the quotient would be no number.
    is_zero = (input == 0) & (other == 0)
    angle = (input / other.masked_fill(is_zero, 1.0)).atan()
    turned = convcore.where(input < 0, angle - convcore.pi, angle + convcore.pi)
    return convcore.where(other < 0, turned, angle)
