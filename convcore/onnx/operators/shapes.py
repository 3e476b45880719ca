"""Operators of shape: reshape, transpose, join, split, expand, repeat."""

from __future__ import annotations

import math

import numpy as np

import convcore
from convcore import Tensor
from convcore.onnx.errors import OnnxError
from convcore.onnx.operators.registry import operator
from convcore.onnx.values import (
    Value,
    array_of,
    axis_of,
    by_numpy,
    integers,
    is_differentiable,
    value_of,
)


@operator("Shape", folds=True)
def shape(x: Value, *, start: int = 0, end: int | None = None) -> Value:
    """Return the sizes from one axis to another."""
    return convcore.tensor(list(x.shape)[slice(start, end)], dtype=convcore.int64)


@operator("Size", folds=True)
def size(x: Value) -> Value:
    """Return the number of elements."""
    return convcore.tensor(math.prod(x.shape), dtype=convcore.int64)


@operator("Reshape", folds=True)
def reshape(
    x: Value, sizes: Value = None, *, shape: list[int] | None = None, allowzero: int = 0
) -> Value:
    """Return the elements in another shape: 0 keeps a size, -1 stands for what is left."""
    wanted = integers(sizes) if shape is None else list(shape)
    if not allowzero:
        if any(n == 0 and i >= x.ndim for i, n in enumerate(wanted)):
            raise OnnxError(f"Reshape: a size of 0 copies an axis that {tuple(x.shape)} has not")
        wanted = [x.shape[i] if n == 0 else n for i, n in enumerate(wanted)]
    return x.reshape(wanted)


@operator("Flatten", folds=True)
def flatten(x: Value, *, axis: int = 1) -> Value:
    """Return a matrix: the axes before one, by those from it on."""
    axis = axis + x.ndim if axis < 0 else axis
    rows = math.prod(x.shape[:axis])
    return x.reshape(rows, math.prod(x.shape[axis:]))


@operator("Transpose", folds=True)
def transpose(x: Value, *, perm: list[int] | None = None) -> Value:
    """Return the axes in another order; reversed by default."""
    order = list(range(x.ndim))[::-1] if perm is None else perm
    return x.permute(order) if isinstance(x, Tensor) else x.transpose(order)


def _axes(values: Value, axes: list[int] | None) -> list[int] | None:
    return integers(values) if values is not None else axes


@operator("Squeeze", folds=True)
def squeeze(x: Value, which: Value = None, *, axes: list[int] | None = None) -> Value:
    """Return the tensor without axes of size 1: those named, or all."""
    chosen = _axes(which, axes)
    numbers = range(x.ndim) if chosen is None else [axis_of(a, x.ndim) for a in chosen]
    if chosen is not None and any(x.shape[a] != 1 for a in numbers):
        raise OnnxError(f"Squeeze: axes {chosen} of {tuple(x.shape)} are not all of size 1")
    return x.reshape([n for a, n in enumerate(x.shape) if not (a in numbers and n == 1)])


@operator("Unsqueeze", folds=True)
def unsqueeze(x: Value, which: Value = None, *, axes: list[int] | None = None) -> Value:
    """Return the tensor with axes of size 1 at these places of the result."""
    chosen = _axes(which, axes) or []
    places = {axis_of(a, x.ndim + len(chosen)) for a in chosen}
    if len(places) < len(chosen):
        raise OnnxError(f"Unsqueeze: axes {chosen} of {x.ndim + len(chosen)} have one axis twice")
    sizes = iter(x.shape)
    return x.reshape([1 if a in places else next(sizes) for a in range(x.ndim + len(chosen))])


@operator("Concat", folds=True)
def concat(*values: Value, axis: int = 1) -> Value:
    """Return tensors joined along an axis."""
    if all(isinstance(v, Tensor) for v in values):
        return convcore.cat(values, axis)
    return value_of(np.concatenate([array_of(v) for v in values], axis))


@operator("Split")
def split(
    x: Value,
    sizes: Value = None,
    *,
    outputs: int,
    axis: int = 0,
    split: list[int] | None = None,
    num_outputs: int | None = None,
) -> tuple[Value, ...] | Value:
    """Return parts of given sizes along an axis, or as even as can be."""
    chosen = integers(sizes) if sizes is not None else split
    if chosen is None:
        n, count = x.shape[axis], num_outputs or outputs
        each = -(-n // count)
        chosen = [each] * (count - 1) + [n - each * (count - 1)]
    parts = convcore.split(x, chosen, axis)
    return parts if outputs > 1 else parts[0]


@operator("Expand")
def expand(x: Value, sizes: Value) -> Value:
    """Return the tensor repeated to the shape that it and the given one broadcast to."""
    wanted = np.broadcast_shapes(tuple(x.shape), tuple(integers(sizes)))
    if not isinstance(x, Tensor):
        return np.broadcast_to(x, wanted)
    return x.expand(wanted) if is_differentiable(x) else by_numpy(np.broadcast_to)(x, shape=wanted)


@operator("Tile")
def tile(x: Value, repeats: Value, axis: Value = None) -> Value:
    """Return the tensor repeated along each axis."""
    if axis is not None:  # opset 1: so many times along one axis
        counts = [1] * x.ndim
        counts[integers(axis)[0]] = integers(repeats)[0]
    else:
        counts = integers(repeats)
    return x.repeat(counts) if isinstance(x, Tensor) else np.tile(x, counts)


@operator("DepthToSpace")
def depth_to_space(x: Value, *, blocksize: int, mode: str = "DCR") -> Value:
    """Return channels moved into blocks of pixels."""
    n, c, h, w = x.shape
    b = blocksize
    if mode == "DCR":
        y = x.reshape(n, b, b, c // b**2, h, w).permute(0, 3, 4, 1, 5, 2)
    else:
        y = x.reshape(n, c // b**2, b, b, h, w).permute(0, 1, 4, 2, 5, 3)
    return y.reshape(n, c // b**2, h * b, w * b)


@operator("SpaceToDepth")
def space_to_depth(x: Value, *, blocksize: int, mode: str = "DCR") -> Value:
    """Return blocks of pixels moved into channels."""
    n, c, h, w = x.shape
    b = blocksize
    y = x.reshape(n, c, h // b, b, w // b, b)
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return y.permute(*order).reshape(n, c * b * b, h // b, w // b)
