"""Steps for elementwise ops: activations, and arithmetic of two operands that broadcast."""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore.engine.layers.elementwise import elementwise
from convcore.engine.runtime.checks import Array
from convcore.functions._support.errstate import ignore_errstate
from convcore.inference.execution_plan import FLOAT, Value
from convcore.inference.op_graph import Op
from convcore.inference.plan_builder import PlanBuilder, UnplannedError, computed, constant

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
    """Return an activation's kernel (engine/layers/elementwise/) and its constants."""
    return ("relu",) if op.name == "Relu" else op.attributes["kernel"]


def arithmetic(builder: PlanBuilder, op: Op) -> Value | Array:
    """Add a sum, difference, product or quotient of results and constants."""
    a, b = (_number(op) if one is None else one for one in builder.consume(*op.inputs))
    if op.name == "Rsub":
        a, b = b, a
    if not isinstance(a, Value) and not isinstance(b, Value):
        return ignore_errstate(_FUNCTIONS[op.name], a, b)
    y = _broadcast(builder, a, b)
    kernel = _KERNELS.get(op.name)
    if kernel and isinstance(a, Value) and isinstance(b, Value) and a.same_layout(b):
        builder.step(elementwise.step_of(kernel), a, b, y)
    elif not kernel or not (
        _added_by_channel(builder, kernel, a, b, y) or _added_by_channel(builder, kernel, b, a, y)
    ):
        builder.step(ignore_errstate, _FUNCTIONS[op.name], a, b, y)
    return y


def prelu(builder: PlanBuilder, op: Op) -> Value:
    """Add a ReLU whose slope below 0 is a number a channel."""
    x, slopes = builder.consume(*op.inputs)
    x, slopes = computed(x), constant(slopes)
    y = builder.in_place_of(x)
    if not _added_by_channel(builder, "prelu", x, slopes, y):
        builder.step(_write_prelu, x, slopes, y)
    return y


def _write_prelu(x: Array, slopes: Array, out: Array) -> None:
    np.copyto(out, ignore_errstate(np.where, x > 0, x, x * slopes))


def _added_by_channel(builder: PlanBuilder, kernel: str, x: Any, numbers: Any, y: Value) -> bool:
    """Add a compiled op of results and a number a channel, if they are that; tell whether."""
    shape, rank = y.shape, len(y.shape)
    if not isinstance(x, Value) or rank < 3 or not x.same_layout(y):
        return False
    of_image = (1,) * (rank - 2)
    if isinstance(numbers, Value):
        images = shape[0]
        if numbers.shape != (*shape[:2], *of_image) or not numbers.is_dense:
            return False
        given: Value | Array = Value(numbers.shape, False, numbers, _rows)
    else:
        images = 1
        if numbers.size != 1 and numbers.shape not in (
            (shape[1], *of_image),
            (1, shape[1], *of_image),
        ):
            return False
        given = np.array(np.broadcast_to(numbers.reshape(1, -1), (1, shape[1])))
    step = elementwise.step_by_channel(kernel, shape, images, y.channels_last)
    builder.step(step, x, given, y)
    return True


def _rows(array: Array) -> Array:
    return array.reshape(array.shape[:2])


def _number(op: Op) -> np.float32:
    """Return the operand that is a Python number."""
    number = op.attributes.get("number")
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
