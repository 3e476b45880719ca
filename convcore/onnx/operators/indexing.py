"""Operators that read and write at indices: gather, scatter, slice, compress, one-hot."""

from __future__ import annotations

from typing import Any

import numpy as np

import convcore
from convcore import Tensor
from convcore._tensor.reads import is_static, mark_static
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


def _wrapped(indices: Value, size: int) -> Value:
    """Return indices without negative ones, checked; static ones stay so."""
    array = array_of(indices).astype(np.int64)
    if array.size and (array.min() < -size or array.max() >= size):
        raise OnnxError(
            f"an index in [{array.min()}, {array.max()}] is outside [-{size}, {size - 1}]"
        )
    wrapped = value_of(np.where(array < 0, array + size, array))
    if is_static(indices):
        mark_static(wrapped)
    return wrapped


@operator("Gather", weights=(0,), folds=True)
def gather(x: Value, indices: Value, *, axis: int = 0) -> Value:
    """Return slices of an axis at indices of any shape."""
    axis = axis_of(axis, x.ndim)
    where = _wrapped(indices, x.shape[axis])
    if not isinstance(x, Tensor):
        return np.take(x, array_of(where), axis)
    if where.ndim == 1:
        return x.index_select(axis, where)
    flat = where.reshape(-1)
    if is_static(where):
        mark_static(flat)
    return x.index_select(axis, flat).reshape([*x.shape[:axis], *where.shape, *x.shape[axis + 1 :]])


@operator("GatherElements")
def gather_elements(x: Value, indices: Value, *, axis: int = 0) -> Value:
    """Return for each index the element at that place of an axis."""
    where = _wrapped(indices, x.shape[axis])
    if where.ndim == 0:
        return x
    return x.gather(axis, where)


@operator("GatherND")
def gather_nd(x: Value, indices: Value, *, batch_dims: int = 0) -> Value:
    """Return slices at tuples of indices, batch by batch."""
    places = array_of(indices)
    batches = [value_of(each.copy()) for each in np.indices(places.shape[:-1])[:batch_dims]]
    inside = [
        _wrapped(value_of(places[..., k]), x.shape[batch_dims + k]) for k in range(places.shape[-1])
    ]
    return x[(*batches, *inside)]


def _refuse_gradient(name: str, *values: Value) -> None:
    if convcore.is_grad_enabled() and any(is_differentiable(v) and v.requires_grad for v in values):
        raise OnnxError(f"{name} has no gradient here; call the net under no_grad")


_REDUCERS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


@operator("ScatterElements", "Scatter")
def scatter_elements(
    x: Value, indices: Value, updates: Value, *, axis: int = 0, reduction: str = "none"
) -> Value:
    """Return a copy with elements written, or combined, at indices along an axis."""
    where = _wrapped(indices, x.shape[axis])
    if reduction == "none":
        return x.scatter(axis, where, updates)
    return x.scatter_reduce(axis, where, updates, _REDUCERS[reduction], include_self=True)


@operator("ScatterND")
def scatter_nd(x: Value, indices: Value, updates: Value, *, reduction: str = "none") -> Value:
    """Return a copy with slices written, or combined, at tuples of indices."""
    places = array_of(indices)
    where = tuple(_wrapped(value_of(places[..., k]), x.shape[k]) for k in range(places.shape[-1]))
    if reduction == "none":
        return x.index_put(where, updates)
    if reduction == "add":
        return x.index_put(where, updates, accumulate=True)
    _refuse_gradient("ScatterND", x, updates)
    result = array_of(x).copy()
    function = {"mul": np.multiply, "max": np.maximum, "min": np.minimum}[reduction]
    function.at(result, tuple(map(array_of, where)), array_of(updates))
    return value_of(result)


@operator("TensorScatter")
def tensor_scatter(
    x: Value, update: Value, starts: Value = None, *, axis: int = -2, mode: str = "linear"
) -> Value:
    """Return a cache with new entries written from each batch's start on."""
    _refuse_gradient("TensorScatter", x, update)
    axis = axis_of(axis, x.ndim)
    n, room = update.shape[axis], x.shape[axis]
    result = array_of(x).copy()
    firsts = [0] * x.shape[0] if starts is None else integers(starts)
    for image, first in enumerate(firsts):
        places = (first + np.arange(n)) % room if mode == "circular" else first + np.arange(n)
        index = (*(slice(None),) * (axis - 1), places)
        result[image][index] = array_of(update)[image]
    return value_of(result)


@operator("Slice", folds=True)
def slice_(
    x: Value,
    first: Value = None,
    last: Value = None,
    which: Value = None,
    step: Value = None,
    *,
    starts: list[int] | None = None,
    ends: list[int] | None = None,
    axes: list[int] | None = None,
) -> Value:
    """Return a part of each axis, from one index to before another, by steps."""
    begins = integers(first) if first is not None else list(starts or [])
    stops = integers(last) if last is not None else list(ends or [])
    chosen = integers(which) if which is not None else axes
    chosen = list(range(len(begins))) if chosen is None else chosen
    steps = integers(step) if step is not None else [1] * len(begins)
    for axis, begin, stop, stride in zip(chosen, begins, stops, steps, strict=True):
        x = _part(x, axis_of(axis, x.ndim), slice(*_bounds(begin, stop, stride, x.shape[axis])))
    return x


def _bounds(begin: int, stop: int, stride: int, size: int) -> tuple[int, int | None, int]:
    begin, stop, stride = slice(begin, stop, stride).indices(size)
    return begin, None if stop < 0 else stop, stride


def _part(x: Value, axis: int, part: slice) -> Value:
    index = (slice(None),) * axis
    if part.step > 0 or not isinstance(x, Tensor):
        return x[(*index, part)]
    return x.index_select(axis, convcore.from_numpy(np.arange(x.shape[axis])[part].copy()))


@operator("Compress")
def compress(x: Value, condition: Value, *, axis: int | None = None) -> Value:
    """Return the slices, or elements, where a condition holds."""
    places = value_of(np.flatnonzero(array_of(condition)))
    return x.reshape(-1)[places] if axis is None else x.index_select(axis, places)


@operator("NonZero")
def non_zero(x: Value) -> Value:
    """Return the coordinates of elements that are not 0, a row an axis."""
    return by_numpy(lambda a: np.array(np.nonzero(np.atleast_1d(a)), np.int64))(x)


@operator("Unique")
def unique(x: Value, *, outputs: int, axis: int | None = None, sorted: int = 1) -> Any:
    """Return each value once, first places, inverse and counts."""
    values, first, inverse, counts = np.unique(
        array_of(x), return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.reshape(-1)
    if not sorted:
        order = np.argsort(first)
        values = np.take(values, order, 0 if axis is None else axis)
        rank = np.argsort(order)
        first, counts, inverse = first[order], counts[order], rank[inverse]
    results = tuple(value_of(np.asarray(each)) for each in (values, first, inverse, counts))
    return results[:outputs] if outputs > 1 else results[0]


@operator("OneHot")
def one_hot(indices: Value, depth: Value, values: Value, *, axis: int = -1) -> Value:
    """Return one value at each index of a new axis, another elsewhere."""
    n = integers(depth)[0]
    off, on = array_of(values)
    places = array_of(indices).astype(np.int64)
    inside = (places >= -n) & (places < n)
    hit = (np.mod(places, n)[..., None] == np.arange(n)) & inside[..., None]
    return value_of(np.moveaxis(np.where(hit, on, off), -1, axis))


@operator("ReverseSequence")
def reverse_sequence(x: Value, lengths: Value, *, batch_axis: int = 1, time_axis: int = 0) -> Value:
    """Return sequences with their first elements, as many as each is long, reversed."""
    steps = np.arange(x.shape[time_axis])
    order = np.array([np.r_[steps[:n][::-1], steps[n:]] for n in integers(lengths)])
    shape = [1] * x.ndim
    shape[batch_axis], shape[time_axis] = order.shape
    order = (order if batch_axis < time_axis else order.T).reshape(shape)
    return x.gather(time_axis, value_of(np.broadcast_to(order, tuple(x.shape)).copy()))


@operator("Trilu")
def trilu(x: Value, diagonal: Value = None, *, upper: int = 1) -> Value:
    """Return the upper or lower triangle of matrices, 0 elsewhere."""
    k = 0 if diagonal is None else integers(diagonal)[0]
    if is_differentiable(x):
        return x.triu(k) if upper else x.tril(k)
    return by_numpy(np.triu if upper else np.tril)(x, k=k)
