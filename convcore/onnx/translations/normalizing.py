"""Normalization of batches, groups, layers and neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from convcore import Tensor
from convcore.onnx.errors import OnnxError
from convcore.onnx.translation import ints, translates
from convcore.onnx.values import array_of

if TYPE_CHECKING:
    from convcore.onnx.recording import Recorder


def _filled(r: Recorder, value: Any, like: Tensor, size: int, number: float) -> str:
    if value is not None:
        return r.name(value)
    return r.constant(np.full(size, number, array_of(like).dtype))


@translates("batch_norm")
def _batch_norm(
    r: Recorder,
    y: Any,
    *,
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any,
    bias: Any,
    training: bool,
    momentum: float,
    eps: float,
) -> list[str]:
    if training:
        raise OnnxError("a batch norm without running statistics")
    size = input.shape[1]
    names = [
        r.name(input),
        _filled(r, weight, input, size, 1.0),
        _filled(r, bias, input, size, 0.0),
        r.name(running_mean),
        r.name(running_var),
    ]
    return r.node("BatchNormalization", names, epsilon=eps)


@translates("instance_norm")
def _instance_norm(
    r: Recorder,
    y: Any,
    *,
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any,
    bias: Any,
    eps: float,
    use_input_stats: bool,
    **_: Any,
) -> list[str]:
    size = input.shape[1]
    weights = [_filled(r, weight, input, size, 1.0), _filled(r, bias, input, size, 0.0)]
    if not use_input_stats:
        names = [r.name(input), *weights, r.name(running_mean), r.name(running_var)]
        return r.node("BatchNormalization", names, epsilon=eps)
    return r.node("InstanceNormalization", [r.name(input), *weights], epsilon=eps)


@translates("group_norm")
def _group_norm(
    r: Recorder, y: Any, *, input: Any, num_groups: int, weight: Any, bias: Any, eps: float
) -> list[str]:
    dtype = array_of(input).dtype
    groups = r.node("Reshape", [r.name(input), ints(r, [0, num_groups, -1])])
    ones, zeros = (r.constant(np.full(num_groups, v, dtype)) for v in (1, 0))
    normal = r.node("InstanceNormalization", [*groups, ones, zeros], epsilon=eps)
    result = r.node("Reshape", [*normal, ints(r, [0, *r.sizes(input)[1:]])])
    column = ints(r, [-1, *(1,) * (input.ndim - 2)])
    for op, value in (("Mul", weight), ("Add", bias)):
        if value is not None:
            shaped = r.node("Reshape", [r.name(value), column])
            result = r.node(op, [*result, *shaped])
    return result


@translates("layer_norm")
def _layer_norm(
    r: Recorder, y: Any, *, input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float
) -> list[str]:
    if r.opset < 17:
        raise OnnxError("LayerNormalization is in opset 17 and later")
    shape = list(normalized_shape)
    scale = (
        r.name(weight) if weight is not None else r.constant(np.ones(shape, array_of(input).dtype))
    )
    names = [r.name(input), scale, *([r.name(bias)] if bias is not None else [])]
    return r.node("LayerNormalization", names, axis=-len(shape), epsilon=eps)


@translates("local_response_norm")
def _lrn(
    r: Recorder, y: Any, *, input: Any, size: int, alpha: float, beta: float, k: float
) -> list[str]:
    # For an even size the standard's window has its middle elsewhere.
    if size % 2 == 0:
        raise OnnxError("a local response norm of an even size")
    return r.node("LRN", [r.name(input)], size=size, alpha=alpha, beta=beta, bias=k)


@translates("rms_norm")
def _rms_norm(
    r: Recorder, y: Any, *, input: Any, normalized_shape: Any, weight: Any, eps: Any
) -> list[str]:
    x, dtype = r.name(input), array_of(input).dtype
    if dtype not in (np.float32, np.float64):
        raise OnnxError(f"input must be float32 or float64, got {dtype}")
    added = r.constant(np.finfo(dtype).eps if eps is None else eps, dtype)
    axes = list(range(-len(normalized_shape), 0))
    squares = r.node("Mul", [x, x])
    if r.opset < 18:
        means = r.node("ReduceMean", squares, axes=axes, keepdims=1)
    else:
        means = r.node("ReduceMean", [*squares, r.constant(axes, np.int64)], keepdims=1)
    root = r.node("Sqrt", r.node("Add", [*means, added]))
    result = r.node("Div", [x, *root])
    return result if weight is None else r.node("Mul", [*result, r.name(weight)])
