"""Activations, softmax and dropout."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from convcore import Tensor
from convcore.onnx.errors import OnnxError
from convcore.onnx.translation import cast, ints, like, translates

if TYPE_CHECKING:
    from convcore.onnx.recording import Recorder


_PLAIN = {
    "abs": "Abs",
    "ceil": "Ceil",
    "cos": "Cos",
    "erf": "Erf",
    "exp": "Exp",
    "expit": "Sigmoid",
    "floor": "Floor",
    "log": "Log",
    "logical_not": "Not",
    "neg": "Neg",
    "reciprocal": "Reciprocal",
    "relu": "Relu",
    "round": "Round",
    "sigmoid": "Sigmoid",
    "sign": "Sign",
    "sin": "Sin",
    "softsign": "Softsign",
    "sqrt": "Sqrt",
    "tanh": "Tanh",
}


def _enter_plain(name: str, op: str) -> None:
    @translates(name)
    def plain(
        r: Recorder, y: Any, *, input: Any, inplace: bool = False, decimals: int = 0
    ) -> list[str]:
        if decimals:
            raise OnnxError(f"decimals={decimals}")
        x = [r.name(input)]
        return r.node(op, x if input.dtype == y.dtype else cast(r, y, *x))


for _name, _op in _PLAIN.items():
    _enter_plain(_name, _op)


@translates("relu6")
def _relu6(r: Recorder, y: Any, *, input: Any, **_: Any) -> list[str]:
    return r.node("Clip", [r.name(input), r.constant(like(input, 0)), r.constant(like(input, 6))])


@translates("hardtanh")
def _hardtanh(
    r: Recorder, y: Any, *, input: Any, min_val: float, max_val: float, **_: Any
) -> list[str]:
    bounds = [r.constant(like(input, each)) for each in (min_val, max_val)]
    return r.node("Clip", [r.name(input), *bounds])


@translates("leaky_relu")
def _leaky_relu(r: Recorder, y: Any, *, input: Any, negative_slope: float, **_: Any) -> list[str]:
    return r.node("LeakyRelu", [r.name(input)], alpha=negative_slope)


@translates("prelu")
def _prelu(r: Recorder, y: Any, *, input: Any, weight: Any) -> list[str]:
    shape = ints(r, [-1, *(1,) * max(input.ndim - 2, 0)])
    slope = r.node("Reshape", [r.name(weight), shape])
    return r.node("PRelu", [r.name(input), *slope])


@translates("elu")
def _elu(r: Recorder, y: Any, *, input: Any, alpha: float, **_: Any) -> list[str]:
    return r.node("Elu", [r.name(input)], alpha=alpha)


@translates("celu")
def _celu(r: Recorder, y: Any, *, input: Any, alpha: float, **_: Any) -> list[str]:
    return r.node("Celu", [r.name(input)], alpha=alpha)


@translates("selu")
def _selu(r: Recorder, y: Any, *, input: Any, **_: Any) -> list[str]:
    return r.node("Selu", [r.name(input)])


@translates("softplus")
def _softplus(r: Recorder, y: Any, *, input: Any, beta: float, threshold: float) -> list[str]:
    scaled = [r.name(input)]
    if beta == 1:
        result = r.node("Softplus", scaled)
    else:
        scale = r.constant(like(input, beta))
        scaled = r.node("Mul", [*scaled, scale])
        result = r.node("Div", [*r.node("Softplus", scaled), scale])
    if threshold >= 20:  # where Softplus is the identity by itself
        return result
    above = r.node("Greater", [*scaled, r.constant(like(input, threshold))])
    return r.node("Where", [*above, r.name(input), *result])


@translates("threshold")
def _threshold(
    r: Recorder, y: Any, *, input: Any, threshold: float, value: float, **_: Any
) -> list[str]:
    above = r.node("Greater", [r.name(input), r.constant(like(input, threshold))])
    return r.node("Where", [*above, r.name(input), r.constant(like(input, value))])


@translates("silu")
def _silu(r: Recorder, y: Any, *, input: Any, **_: Any) -> list[str]:
    return r.node("Mul", [r.name(input), *r.node("Sigmoid", [r.name(input)])])


@translates("mish")
def _mish(r: Recorder, y: Any, *, input: Any, **_: Any) -> list[str]:
    bent = r.node("Tanh", r.node("Softplus", [r.name(input)]))
    return r.node("Mul", [r.name(input), *bent])


@translates("hardsigmoid")
def _hardsigmoid(r: Recorder, y: Any, *, input: Any, **_: Any) -> list[str]:
    return r.node("HardSigmoid", [r.name(input)], alpha=1 / 6, beta=0.5)


@translates("hardswish")
def _hardswish(r: Recorder, y: Any, *, input: Any, **_: Any) -> list[str]:
    gate = r.node("HardSigmoid", [r.name(input)], alpha=1 / 6, beta=0.5)
    return r.node("Mul", [r.name(input), *gate])


@translates("gelu")
def _gelu(r: Recorder, y: Any, *, input: Any, approximate: str) -> list[str]:
    x, half = r.name(input), r.constant(like(input, 0.5))
    one = r.constant(like(input, 1))
    if approximate == "none":
        inner = r.node("Mul", [x, r.constant(like(input, math.sqrt(0.5)))])
        bent = r.node("Erf", inner)
    else:
        cube = r.node("Mul", [x, *r.node("Mul", [x, x])])
        small = r.node("Mul", [*cube, r.constant(like(input, 0.044715))])
        inner = r.node("Add", [x, *small])
        scale = r.constant(like(input, math.sqrt(2 / math.pi)))
        bent = r.node("Tanh", r.node("Mul", [*inner, scale]))
    return r.node("Mul", [*r.node("Mul", [x, half]), *r.node("Add", [*bent, one])])


def _axis(input: Tensor, dim: int | None, dtype: Any) -> int:
    """Return softmax's axis; without one, that of PyTorch's old rule."""
    if dtype is not None:
        raise OnnxError(f"dtype={dtype}")
    if dim is None:
        dim = 0 if input.ndim in (0, 1, 3) else 1
    return dim


@translates("softmax")
def _softmax(
    r: Recorder, y: Any, *, input: Any, dim: Any, dtype: Any = None, _stacklevel: int = 3
) -> list[str]:
    return r.node("Softmax", [r.name(input)], axis=_axis(input, dim, dtype))


@translates("log_softmax")
def _log_softmax(
    r: Recorder, y: Any, *, input: Any, dim: Any, dtype: Any = None, _stacklevel: int = 3
) -> list[str]:
    return r.node("LogSoftmax", [r.name(input)], axis=_axis(input, dim, dtype))


@translates(
    "dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"
)
def _dropout(r: Recorder, y: Any, *, input: Any, training: bool, **_: Any) -> list[str]:
    if training:
        raise OnnxError("dropout in training mode")
    return r.node("Identity", [r.name(input)])


@translates("glu")
def _glu(r: Recorder, y: Any, *, input: Any, dim: int) -> list[str]:
    half = r.constant([y.shape[dim]] * 2, np.int64)
    value, gate = r.node("Split", [r.name(input), half], count=2, axis=dim % input.ndim)
    return r.node("Mul", [value, *r.node("Sigmoid", [gate])])


@translates("hardshrink")
def _hardshrink(r: Recorder, y: Any, *, input: Any, lambd: float) -> list[str]:
    return r.node("Shrink", [r.name(input)], lambd=float(lambd), bias=0.0)


@translates("softshrink")
def _softshrink(r: Recorder, y: Any, *, input: Any, lambd: float) -> list[str]:
    return r.node("Shrink", [r.name(input)], lambd=float(lambd), bias=float(lambd))


@translates("tanhshrink")
def _tanhshrink(r: Recorder, y: Any, *, input: Any) -> list[str]:
    x = r.name(input)
    return r.node("Sub", [x, *r.node("Tanh", [x])])


@translates("logsigmoid")
def _logsigmoid(r: Recorder, y: Any, *, input: Any) -> list[str]:
    # log(1 / (1 + exp(-x))), without its overflow.
    return r.node("Neg", r.node("Softplus", r.node("Neg", [r.name(input)])))


@translates("rrelu")
def _rrelu(
    r: Recorder, y: Any, *, input: Any, lower: float, upper: float, training: bool, **_: Any
) -> list[str]:
    if training:
        raise OnnxError("rrelu in training mode")
    return r.node("LeakyRelu", [r.name(input)], alpha=(lower + upper) / 2)


@translates("softmin")
def _softmin(
    r: Recorder, y: Any, *, input: Any, dim: Any, dtype: Any = None, **_: Any
) -> list[str]:
    if dim is None or dtype is not None:
        raise OnnxError(f"dim={dim}, dtype={dtype}")
    return r.node("Softmax", r.node("Neg", [r.name(input)]), axis=dim)
