"""Functions of each element as steps: activations, and two operands that broadcast."""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore.engine.layers import elementwise
from convcore.functions._support.errstate import ignore_errstate
from convcore.inference.building import Building, UnplannedError, computed
from convcore.inference.operations import Operation
from convcore.inference.plan import FLOAT, Value

_FUNCTIONS = {
    "Add": np.add,
    "Div": np.true_divide,
    "Mul": np.multiply,
    "Rsub": np.subtract,
    "Sub": np.subtract,
}
# Those that run on all threads, where both operands lie alike.
_KERNELS = {"Add": "sum", "Mul": "product"}


def activation(building: Building, operation: Operation) -> Value:
    """Add an activation, in place of what nobody needs any more."""
    x = computed(building.take(*operation.taken)[0])
    y = building.in_place_of(x)
    kernel, *constants = kernel_of(operation)
    building.step(elementwise.step_of(kernel, constants), x, None, y)
    return y


def kernel_of(operation: Operation) -> tuple[Any, ...]:
    """Return an activation's kernel and its constants, as engine/layers/elementwise.py has them."""
    return ("relu",) if operation.name == "Relu" else operation.node.attributes["kernel"]


def arithmetic(building: Building, operation: Operation) -> Value:
    """Add a sum, difference, product or quotient of results and of what is fixed."""
    a, b = (_number(operation) if one is None else one for one in building.take(*operation.taken))
    if operation.name == "Rsub":
        a, b = b, a
    y = _broadcast(building, a, b)
    kernel = _KERNELS.get(operation.name)
    if kernel and isinstance(a, Value) and isinstance(b, Value) and a.lies_as(b):
        building.step(elementwise.step_of(kernel), a, b, y)
    else:
        building.step(ignore_errstate, _FUNCTIONS[operation.name], a, b, y)
    return y


def _number(operation: Operation) -> np.float32:
    """Return the number that is an operand."""
    number = operation.node.attributes.get("number")
    if not isinstance(number, int | float):
        raise UnplannedError("a constant")
    return ignore_errstate(np.float32, number)


def _broadcast(building: Building, *operands: Any) -> Value:
    """Return a result of the shape to which two broadcast, in place of one if that goes."""
    if any(isinstance(one, np.ndarray) and one.dtype != FLOAT for one in operands):
        raise UnplannedError("no float32 numbers")
    shape = np.broadcast_shapes(*(one.shape for one in operands))
    whole = [one for one in operands if isinstance(one, Value) and one.shape == shape]
    if not whole:
        return Value(shape, False)
    # Where they lie in both formats the result is channels_last, as a convolution's is.
    like = max(whole, key=lambda one: one.channels_last)
    if _overlap(operands):
        return Value(shape, like.channels_last)
    return building.in_place_of(like, *(one for one in whole if one.lies_as(like)))


def _overlap(operands: tuple[Any, ...]) -> bool:
    """Return whether one operand may be another part of the memory that the other is in."""
    a, b = operands
    is_shared = isinstance(a, Value) and isinstance(b, Value) and a.root is b.root
    return is_shared and a is not b
