"""Linear layers as steps: convolutions of one pixel an image."""

from __future__ import annotations

import math

import numpy as np

from convcore.engine.checks import Array
from convcore.engine.fixed import FixedConvolution
from convcore.engine.matmul import matmul
from convcore.inference.building import Building, UnplannedError
from convcore.inference.convolutions import PLAIN, end, ending, fixed_convolution, terms_of
from convcore.inference.operations import Operand, Operation
from convcore.inference.plan import Value

# Weights that are kept in panels, too.  Reading larger ones is all the time their product takes.
MOST_BYTES = 32 << 20


def linear(building: Building, operation: Operation) -> Value:
    """Add a linear layer: a convolution of one pixel an image."""
    bias, left, right = operation.taken
    if operation.node.attributes != {"beta": 1, "alpha": 1}:
        raise UnplannedError("a product with factors")
    turned = building.operations.of(right)
    if turned is not None and turned.name != "T":
        raise UnplannedError("a product of results")
    matrix = building.leaf(right).T if turned is None else building.leaf(turned.taken[0])
    offsets = building.leaf(bias)
    if offsets.ndim != 1:
        raise UnplannedError("a sum of a product and a matrix")
    x = _pixels_of(building, left)
    if x is None:
        x = building.value(left)
    else:
        # The pictures are not copied to have their channels apart: the weights are, once.
        assert x.home is not None
        n_out, (_, channels, *sizes) = len(matrix), x.home.shape
        matrix = np.moveaxis(matrix.reshape(n_out, channels, *sizes), 1, -1).reshape(n_out, -1)
    building.take(operation)
    if matrix.nbytes > MOST_BYTES:
        return building.filled(lambda array: _product_sum(array, matrix.T, offsets), x)
    after = ending(building, operation)
    terms = None if after is None else terms_of(after)
    filters = np.ascontiguousarray(matrix)[:, :, np.newaxis, np.newaxis]
    pixels = Value((*x.shape, 1, 1), True, x, _as_pixels)
    y = fixed_convolution(building, FixedConvolution(filters, offsets), pixels, terms or PLAIN)
    return end(building, after, Value(y.shape[:2], False, y, _as_rows))


def _pixels_of(building: Building, operand: Operand) -> Value | None:
    """Return channels_last pictures as rows, as they lie, where their flattening waits."""
    view = building.operations.of(operand)
    if view is None or building.is_made(operand) or not feeds_linear(building, view):
        return None
    copy = building.operations.of(view.taken[0])
    if copy is None or copy.name != "Clone" or building.is_made(copy.node):
        return None
    x = building.value(copy.taken[0])
    n = x.shape[0]
    shape = (n, math.prod(x.shape[1:]))
    if not x.channels_last or view.node.attributes["size"] != shape:
        return None
    building.take(copy)
    building.take(view)
    return Value(shape, False, x, lambda array: np.moveaxis(array, 1, -1).reshape(shape))


def feeds_linear(building: Building, operation: Operation) -> bool:
    """Return whether a copy, or the view of a copy, serves a linear layer alone."""
    if operation.name == "Clone":
        after = building.operations.only_taker(operation.node)
        return after is not None and after.name == "UnsafeView" and feeds_linear(building, after)
    if operation.name == "UnsafeView":
        after = building.operations.only_taker(operation.node)
        return after is not None and after.name == "Addmm"
    return False


def _as_pixels(array: Array) -> Array:
    return array[:, np.newaxis, np.newaxis, :].transpose(0, 3, 1, 2)


def _as_rows(array: Array) -> Array:
    return array[:, :, 0, 0]


def _product_sum(x: Array, columns: Array, bias: Array) -> Array:
    out = matmul(x, columns)
    out += bias
    return out
