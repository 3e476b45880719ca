"""From a net's operations to a plan: which steps make which operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from convcore._tensor import Tensor
from convcore.engine.layers.global_avg_pooling import write_global_avg_pool
from convcore.engine.layers.strided_copy import concatenate
from convcore.engine.runtime.checks import Array
from convcore.inference.building import Building, UnplannedError, computed
from convcore.inference.convolutions import (
    activated,
    added,
    convolution,
    max_pool,
    may_be_joined,
    other_convolution,
)
from convcore.inference.linear import feeds_linear, linear
from convcore.inference.operations import Operation, Operations
from convcore.inference.plan import FLOAT, Plan, Value
from convcore.inference.pointwise import arithmetic


def plan_of(input: Tensor, result: Any) -> Plan:
    """Return the plan of the net that made ``result`` of ``input``.

    Parameters
    ----------
    input : Tensor
        float32, in one of the two memory formats; requires a gradient.
    result : Tensor
        Made with gradients recorded, of the input and of leaves that require one.

    Raises
    ------
    UnplannedError
        The net does what plans do not know.
    """
    if not isinstance(result, Tensor) or result.grad_fn is None:
        raise UnplannedError("the result is no tensor that was computed")
    if {input._array.dtype, result._array.dtype} != {FLOAT} or not input._array.size:
        raise UnplannedError("no float32 numbers")
    return Building(input, Operations(result), _made, _waits).plan()


def _made(building: Building, operation: Operation) -> Value | Array:
    """Add the steps of an operation."""
    make = _MAKERS.get(operation.name)
    if make is None:
        make = activated if operation.node.attributes.get("kernel") else _again
    return make(building, operation)


def _waits(building: Building, operation: Operation) -> bool:
    """Return whether an operation is made when its result is asked for: by what it may join."""
    if operation.name == "PrepackedConvolution":
        return may_be_joined(building, operation)
    return feeds_linear(building, operation)


def _joined(building: Building, operation: Operation) -> Value:
    """Add a concatenation."""
    parts = list(map(computed, building.take(*operation.taken, dense=False)))
    axis = operation.node.attributes["dim"]
    shape = list(parts[0].shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    y = Value(shape, all(part.channels_last for part in parts))
    building.step(_concatenate, axis, y, *parts)
    return y


def _shaped(building: Building, operation: Operation) -> Value:
    """See a result in another shape."""
    size = operation.node.attributes.get("size")
    if size is None:
        raise UnplannedError("a view of another kind")
    x = computed(building.take(*operation.taken, dense=False)[0])
    return building.applied(lambda array: array.reshape(size), x)


def _mean(building: Building, operation: Operation) -> Value:
    """Add a global average pool."""
    x = computed(building.take(*operation.taken)[0])
    axes = tuple(range(2, len(x.shape)))
    attributes = operation.node.attributes
    if attributes.get("dim") != axes or not axes:
        raise UnplannedError("a mean over other axes")
    means = Value((*x.shape[:2], *(1,) * len(axes)), x.channels_last)
    building.step(write_global_avg_pool, x, means)
    if attributes["keepdim"]:
        return means
    return Value(x.shape[:2], False, means, lambda array: array.reshape(x.shape[:2]))


def _again(building: Building, operation: Operation) -> Value | Array:
    """Add any operation of one result that says how it is done again."""
    forward = operation.node.attributes.get("forward")
    x, *others = building.take(*operation.taken, dense=False)
    # What is no result of the net is as it was, and `forward` has it.
    if forward is None or any(isinstance(one, Value) for one in others):
        raise UnplannedError(operation.name)
    return forward(x) if isinstance(x, np.ndarray) else building.applied(forward, computed(x))


def _cut(building: Building, operation: Operation) -> Value:
    """See a result in parts."""
    x = computed(building.take(*operation.taken, dense=False)[0])
    parts = [building.applied(part, x) for part in operation.node.attributes["parts"]]
    for number, part in enumerate(parts[1:], 1):
        building.give((operation.node, number), part)
    return parts[0]


_MAKERS: dict[str, Callable[[Building, Operation], Value | Array]] = {
    "Add": added,
    "Addmm": linear,
    "Cat": _joined,
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
    "ReshapeAlias": _shaped,
    "Rsub": arithmetic,
    "Split": _cut,
    "SplitWithSizes": _cut,
    "Squeeze": _shaped,
    "Sub": arithmetic,
    "Unbind": _cut,
    "UnsafeView": _shaped,
    "Unsqueeze": _shaped,
    "View": _shaped,
}


def _concatenate(axis: int, out: Array, *parts: Array) -> None:
    concatenate(parts, axis, out)
