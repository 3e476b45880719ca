"""Lowering: from the ops of a net to the steps of a plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from convcore._tensor import Tensor
from convcore.engine.layers.global_avg_pooling import write_global_avg_pool
from convcore.engine.layers.strided_copy import concatenate
from convcore.engine.runtime.checks import Array
from convcore.inference.convolutions import (
    activated,
    added,
    can_fuse,
    convolution,
    max_pool,
    other_convolution,
)
from convcore.inference.elementwise import arithmetic
from convcore.inference.execution_plan import FLOAT, Plan, Value
from convcore.inference.linear import feeds_linear, linear
from convcore.inference.op_graph import Op, OpGraph
from convcore.inference.plan_builder import PlanBuilder, UnplannedError, computed


def plan_of(input: Tensor, result: Any) -> Plan:
    """Return the plan of the net that computed ``result`` from ``input``.

    Parameters
    ----------
    input : Tensor
        float32, in one of the two memory formats; requires a gradient.
    result : Tensor
        Computed with gradients recorded, from the input and leaf tensors that require one.

    Raises
    ------
    UnplannedError
        The net does something that plans do not support.
    """
    if not isinstance(result, Tensor) or result.grad_fn is None:
        raise UnplannedError("the result is no tensor that was computed")
    if {input._array.dtype, result._array.dtype} != {FLOAT} or not input._array.size:
        raise UnplannedError("no float32 numbers")
    return PlanBuilder(input, OpGraph(result), _lower, _is_deferred).plan()


def _lower(builder: PlanBuilder, op: Op) -> Value | Array:
    """Add the steps of an op; return its result."""
    lower = _LOWERINGS.get(op.name)
    if lower is None:
        lower = activated if op.node.attributes.get("kernel") else _replayed
    return lower(builder, op)


def _is_deferred(builder: PlanBuilder, op: Op) -> bool:
    """Return whether an op is lowered with its consumer, into which it may be fused."""
    if op.name == "PrepackedConvolution":
        return can_fuse(builder, op)
    return feeds_linear(builder, op)


def _concatenated(builder: PlanBuilder, op: Op) -> Value:
    """Add a concatenation."""
    parts = list(map(computed, builder.consume(*op.inputs, dense=False)))
    axis = op.node.attributes["dim"]
    shape = list(parts[0].shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    y = Value(shape, all(part.channels_last for part in parts))
    builder.step(_concatenate, axis, y, *parts)
    return y


def _reshaped(builder: PlanBuilder, op: Op) -> Value:
    """Reshape a result."""
    size = op.node.attributes.get("size")
    if size is None:
        raise UnplannedError("a view of another kind")
    x = computed(builder.consume(*op.inputs, dense=False)[0])
    return builder.apply(lambda array: array.reshape(size), x)


def _mean(builder: PlanBuilder, op: Op) -> Value:
    """Add a mean over all pixels (global average pooling)."""
    x = computed(builder.consume(*op.inputs)[0])
    axes = tuple(range(2, len(x.shape)))
    attributes = op.node.attributes
    if attributes.get("dim") != axes or not axes:
        raise UnplannedError("a mean over other axes")
    means = Value((*x.shape[:2], *(1,) * len(axes)), x.channels_last)
    builder.step(write_global_avg_pool, x, means)
    if attributes["keepdim"]:
        return means
    return Value(x.shape[:2], False, means, lambda array: array.reshape(x.shape[:2]))


def _replayed(builder: PlanBuilder, op: Op) -> Value | Array:
    """Add an op of one input whose node knows its forward function."""
    forward = op.node.attributes.get("forward")
    x, *others = builder.consume(*op.inputs, dense=False)
    # Other operands are constants, which `forward` already has.
    if forward is None or any(isinstance(one, Value) for one in others):
        raise UnplannedError(op.name)
    return forward(x) if isinstance(x, np.ndarray) else builder.apply(forward, computed(x))


def _split(builder: PlanBuilder, op: Op) -> Value:
    """Split a result."""
    x = computed(builder.consume(*op.inputs, dense=False)[0])
    parts = [builder.apply(part, x) for part in op.node.attributes["parts"]]
    for number, part in enumerate(parts[1:], 1):
        builder.define((op.node, number), part)
    return parts[0]


_LOWERINGS: dict[str, Callable[[PlanBuilder, Op], Value | Array]] = {
    "Add": added,
    "Addmm": linear,
    "Cat": _concatenated,
    "Convolution": other_convolution,
    "Div": arithmetic,
    "PrepackedConvolution": convolution,
    "MaxPool1DWithIndices": max_pool,
    "MaxPool2DWithIndices": max_pool,
    "MaxPool3DWithIndices": max_pool,
    "Mean": _mean,
    "Mm": linear,
    "Mul": arithmetic,
    "Relu": activated,
    "ReshapeAlias": _reshaped,
    "Rsub": arithmetic,
    "Split": _split,
    "SplitWithSizes": _split,
    "Squeeze": _reshaped,
    "Sub": arithmetic,
    "Unbind": _split,
    "UnsafeView": _reshaped,
    "Unsqueeze": _reshaped,
    "View": _reshaped,
}


def _concatenate(axis: int, out: Array, *parts: Array) -> None:
    concatenate(parts, axis, out)
