"""Linear layers as steps: convolutions of one pixel an image."""

from __future__ import annotations

import math

import numpy as np

from convcore.engine.conv.prepacked import PrepackedConvolution
from convcore.engine.matmul import matmul
from convcore.engine.runtime.checks import Array
from convcore.inference.building import Building, UnplannedError, computed, fixed
from convcore.inference.convolutions import PLAIN, end, ending, fixed_convolution, terms_of
from convcore.inference.operations import Operand, Operation
from convcore.inference.plan import Value

# Weights that are kept in panels, too.  Reading larger ones is all the time their product takes.
MOST_BYTES = 32 << 20


def linear(building: Building, operation: Operation) -> Value:
    """Add the product of a result and a fixed matrix, perhaps with a fixed vector added."""
    if operation.node.attributes not in ({}, {"beta": 1, "alpha": 1}):
        raise UnplannedError("a product with factors")
    *vector, left, right = operation.taken
    picture = _picture(building, left)
    x, columns, *bias = building.take(left if picture is None else picture, right, *vector)
    x, matrix = computed(x), fixed(columns).T
    offsets = fixed(bias[0]) if bias else None
    if picture is not None:
        matrix, x = _as_they_lie(matrix, x)
    if matrix.nbytes > MOST_BYTES:
        return building.applied(lambda array: _product_sum(array, matrix.T, offsets), x)
    after = ending(building, operation)
    terms = None if after is None else terms_of(after)
    weight = np.ascontiguousarray(matrix)[:, :, np.newaxis, np.newaxis]
    pixels = Value((*x.shape, 1, 1), True, x, _as_pixels)
    y = fixed_convolution(building, PrepackedConvolution(weight, offsets), pixels, terms or PLAIN)
    return end(building, after, Value(y.shape[:2], False, y, _as_rows))


def feeds_linear(building: Building, operation: Operation) -> bool:
    """Return whether a copy, or the view of a copy, serves a linear layer alone."""
    after = building.operations.only_taker(operation.result)
    if after is None:
        return False
    if operation.name == "Clone":
        return after.name == "UnsafeView" and feeds_linear(building, after)
    return operation.name == "UnsafeView" and after.name in ("Addmm", "Mm")


def _picture(building: Building, operand: Operand) -> Operand:
    """Return the channels_last pictures of which rows wait to be made, for a linear layer alone."""
    view = building.waiting(operand)
    copy = None if view is None else building.waiting(view.taken[0])
    if view is None or copy is None or copy.name != "Clone":
        return None
    x = building.peek(copy.taken[0])
    if not isinstance(x, Value) or not x.channels_last:
        return None
    is_flat = view.node.attributes["size"] == (x.shape[0], math.prod(x.shape[1:]))
    return copy.taken[0] if is_flat else None


def _as_they_lie(matrix: Array, x: Value) -> tuple[Array, Value]:
    """Return the matrix for channels_last pictures seen as rows, and those.

    The pictures are not copied to have their channels apart: the weights are, once.
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
