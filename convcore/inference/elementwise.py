"""Steps for elementwise ops: activations, and arithmetic of two operands that broadcast."""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore.engine.layers import elementwise
from convcore.functions._support.errstate import ignore_errstate
from convcore.inference.execution_plan import FLOAT, Value
from convcore.inference.op_graph import Op
from convcore.inference.plan_builder import PlanBuilder, UnplannedError, computed

_FUNCTIONS = {
    "Add": np.add,
    "Div": np.true_divide,
    "Mul": np.multiply,
    "Rsub": np.subtract,
    "Sub": np.subtract,
}
# Compiled and multi-threaded; for two operands with the same layout.
_KERNELS = {"Add": "sum", "Mul": "product"}


def activation(builder: PlanBuilder, op: Op) -> Value:
    """Add an activation, in place if nothing else needs its input."""
    x = computed(builder.consume(*op.inputs)[0])
    y = builder.in_place_of(x)
    kernel, *constants = kernel_of(op)
    builder.step(elementwise.step_of(kernel, constants), x, None, y)
    return y


def kernel_of(op: Op) -> tuple[Any, ...]:
    """Return an activation's kernel (engine/layers/elementwise.py) and its constants."""
    return ("relu",) if op.name == "Relu" else op.node.attributes["kernel"]


def arithmetic(builder: PlanBuilder, op: Op) -> Value:
    """Add a sum, difference, product or quotient of results and constants."""
    a, b = (_number(op) if one is None else one for one in builder.consume(*op.inputs))
    if op.name == "Rsub":
        a, b = b, a
    y = _broadcast(builder, a, b)
    kernel = _KERNELS.get(op.name)
    if kernel and isinstance(a, Value) and isinstance(b, Value) and a.same_layout(b):
        builder.step(elementwise.step_of(kernel), a, b, y)
    else:
        builder.step(ignore_errstate, _FUNCTIONS[op.name], a, b, y)
    return y


def _number(op: Op) -> np.float32:
    """Return the operand that is a Python number."""
    number = op.node.attributes.get("number")
    if not isinstance(number, int | float):
        raise UnplannedError("a constant")
    return ignore_errstate(np.float32, number)


def _broadcast(builder: PlanBuilder, *operands: Any) -> Value:
    """Return a result of the shape that two operands broadcast to, in place if possible."""
    if any(isinstance(one, np.ndarray) and one.dtype != FLOAT for one in operands):
        raise UnplannedError("no float32 numbers")
    shape = np.broadcast_shapes(*(one.shape for one in operands))
    whole = [one for one in operands if isinstance(one, Value) and one.shape == shape]
    if not whole:
        return Value(shape, False)
    # Of two memory formats the result takes channels_last, as a convolution's does.
    like = max(whole, key=lambda one: one.channels_last)
    if _overlap(operands):
        return Value(shape, like.channels_last)
    return builder.in_place_of(like, *(one for one in whole if one.same_layout(like)))


def _overlap(operands: tuple[Any, ...]) -> bool:
    """Return whether the operands may be different parts of one memory."""
    a, b = operands
    is_shared = isinstance(a, Value) and isinstance(b, Value) and a.root is b.root
    return is_shared and a is not b
