"""Activations, softmax and dropout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import convcore
from convcore import Tensor
from convcore.functions.table import ROWS, Row
from convcore.onnx.errors import OnnxError
from convcore.onnx.translation import cast, composes, ints, like, translates

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
    "round": "Round",
    "sign": "Sign",
    "sin": "Sin",
    "sqrt": "Sqrt",
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


def _enter_row(name: str, row: Row) -> None:
    """Enter an activation: its operator, or its formula."""
    if not row.operator:

        @composes(name)
        def composed(*, input: Any, inplace: bool = False, **arguments: Any) -> Any:
            return row.formula(convcore, input, **arguments)

        return

    @translates(name)
    def translated(r: Recorder, y: Any, *, input: Any, **arguments: Any) -> list[str]:
        options = {key: arguments.get(value, value) for key, value in row.attributes.items()}
        return r.node(row.operator, [r.name(input)], **options)


for _name, _row in ROWS.items():
    _enter_row(_name, _row)


@translates("prelu")
def _prelu(r: Recorder, y: Any, *, input: Any, weight: Any) -> list[str]:
    shape = ints(r, [-1, *(1,) * max(input.ndim - 2, 0)])
    slope = r.node("Reshape", [r.name(weight), shape])
    return r.node("PRelu", [r.name(input), *slope])


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
