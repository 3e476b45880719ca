"""Steps for linear layers: 1x1 convolutions of images of one pixel."""

from __future__ import annotations

import math
from collections.abc import Hashable

import numpy as np

from convcore.engine.conv.prepacked import PrepackedConvolution
from convcore.engine.matmul import matmul
from convcore.engine.runtime.checks import Array
from convcore.inference.convolutions import (
    PLAIN,
    activation_params_of,
    define_activation,
    fusable_activation,
    prepacked_convolution,
)
from convcore.inference.execution_plan import Value
from convcore.inference.op_graph import Op, Operand
from convcore.inference.plan_builder import PlanBuilder, UnplannedError, computed, constant

# Weights up to this size are prepacked, and reordered for channels_last images; with larger ones
# and few rows, reading the weights is all that takes time.
MOST_BYTES = 32 << 20
FEW_ROWS = 8


def linear(builder: PlanBuilder, op: Op) -> Value:
    """Add the steps of x @ W, plus a bias if there is one, to the plan; W and bias are constant."""
    if op.attributes not in ({}, {"beta": 1, "alpha": 1}):
        raise UnplannedError("a product with factors")
    *vector, left, right = op.inputs
    view = builder.deferred(left)
    images = _flattened_images(builder, left, constant(builder.peek(right)))
    x, columns, *bias = builder.consume(left if images is None else images, right, *vector)
    x, matrix = computed(x), constant(columns).T
    offsets = constant(bias[0]) if bias else None
    if images is not None:
        matrix, x = _in_memory_order(matrix, x)
        builder.include(view)
    if matrix.nbytes > MOST_BYTES and x.shape[0] < FEW_ROWS:
        product = x.shape[0] * matrix.size
        return builder.apply(
            lambda array: _product_sum(array, matrix.T, offsets), x, multiply_adds=product
        )
    after = fusable_activation(builder, op)
    builder.include(after)
    params = None if after is None else activation_params_of(after)
    conv = builder.shared((_place(columns), _place(offsets), images), _packed, matrix, offsets)
    pixels = Value((*x.shape, 1, 1), True, x, _as_pixels)
    y = prepacked_convolution(builder, conv, pixels, params or PLAIN)
    return define_activation(builder, after, Value(y.shape[:2], False, y, _as_rows))


def _packed(matrix: Array, offsets: Array | None) -> PrepackedConvolution:
    weight = np.ascontiguousarray(matrix)[:, :, np.newaxis, np.newaxis]
    return PrepackedConvolution(weight, offsets)


def _place(array: Array | None) -> Hashable:
    """Return where in memory a constant lies, and how."""
    return None if array is None else (array.ctypes.data, array.shape, array.strides)


def feeds_linear(builder: PlanBuilder, op: Op) -> bool:
    """Return whether a copy, or a view of one, is consumed by a linear layer alone."""
    after = builder.ops.only_consumer(op.result)
    if after is None:
        return False
    if op.name == "Clone":
        return after.name == "UnsafeView" and feeds_linear(builder, after)
    return op.name == "UnsafeView" and after.name in ("Addmm", "Mm")


def _flattened_images(builder: PlanBuilder, operand: Operand, weight: Array) -> Operand:
    """Return the channels_last images that a deferred flatten turns into rows, if there is one.

    None if the weights are so many that a second copy of them costs more than one of the images.
    """
    view = builder.deferred(operand)
    copy = None if view is None else builder.deferred(view.inputs[0])
    if view is None or copy is None or copy.name != "Clone" or weight.nbytes > MOST_BYTES:
        return None
    x = builder.peek(copy.inputs[0])
    if not isinstance(x, Value) or not x.channels_last:
        return None
    is_flat = view.attributes["size"] == (x.shape[0], math.prod(x.shape[1:]))
    return copy.inputs[0] if is_flat else None


def _in_memory_order(matrix: Array, x: Value) -> tuple[Array, Value]:
    """Return a matrix with its columns in channels_last order, and the images as rows.

    So the images are flattened without a copy; the weights are reordered once instead.
    """
    n, channels, *sizes = x.shape
    matrix = np.moveaxis(matrix.reshape(-1, channels, *sizes), 1, -1).reshape(len(matrix), -1)
    shape = (n, matrix.shape[1])
    return matrix, Value(shape, False, x, lambda array: np.moveaxis(array, 1, -1).reshape(shape))


def _as_pixels(array: Array) -> Array:
    return array[:, np.newaxis, np.newaxis, :].transpose(0, 3, 1, 2)


def _as_rows(array: Array) -> Array:
    return array[:, :, 0, 0]


def _product_sum(x: Array, columns: Array, bias: Array | None) -> Array:
    out = matmul(x, columns)
    return out if bias is None else np.add(out, bias, out)
