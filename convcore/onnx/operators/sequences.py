"""Sequences and optional values: Python's lists and None."""

from __future__ import annotations

import numpy as np

import convcore
from convcore.onnx.errors import OnnxError
from convcore.onnx.operators.registry import operator
from convcore.onnx.values import Value, integers, value_of


@operator("SequenceConstruct")
def sequence_construct(*values: Value) -> list[Value]:
    """Return a sequence of tensors."""
    return list(values)


@operator("SequenceEmpty")
def sequence_empty(*, dtype: int = 1) -> list[Value]:
    """Return a sequence of nothing."""
    return []


@operator("SequenceAt")
def sequence_at(values: list[Value], place: Value) -> Value:
    """Return the tensor at a place."""
    return values[_place(place, len(values), 0)]


def _place(place: Value, n: int, more: int) -> int:
    index = integers(place)[0]
    if not -n <= index < n + more:
        raise OnnxError(f"place {index} is outside a sequence of {n}")
    return index


@operator("SequenceInsert")
def sequence_insert(values: list[Value], new: Value, place: Value = None) -> list[Value]:
    """Return a sequence with one tensor more, at a place or at the end."""
    result = list(values)
    result.insert(len(values) if place is None else _place(place, len(values), 1), new)
    return result


@operator("SequenceErase")
def sequence_erase(values: list[Value], place: Value = None) -> list[Value]:
    """Return a sequence without the tensor at a place, or without the last."""
    result = list(values)
    del result[-1 if place is None else _place(place, len(values), 0)]
    return result


@operator("SequenceLength")
def sequence_length(values: list[Value]) -> Value:
    """Return the number of tensors."""
    return convcore.tensor(len(values))


@operator("ConcatFromSequence")
def concat_from_sequence(values: list[Value], *, axis: int, new_axis: int = 0) -> Value:
    """Return the tensors joined along an axis, or stacked along a new one."""
    return convcore.stack(values, axis) if new_axis else convcore.cat(values, axis)


@operator("SplitToSequence")
def split_to_sequence(
    x: Value, sizes: Value = None, *, axis: int = 0, keepdims: int = 1
) -> list[Value]:
    """Return parts of an axis: of given sizes, of one size, or each of 1."""
    if sizes is None:
        parts = list(convcore.split(x, 1, axis))
        return parts if keepdims else [part.squeeze(axis) for part in parts]
    given = integers(sizes)
    return list(convcore.split(x, given if sizes.ndim else given[0], axis))


@operator("Optional")
def optional(value: Value = None) -> Value:
    """Return the value, or nothing."""
    return value


@operator("OptionalHasElement")
def optional_has_element(value: Value = None) -> Value:
    """Return whether there is a value."""
    return value_of(np.asarray(value is not None))


@operator("OptionalGetElement")
def optional_get_element(value: Value) -> Value:
    """Return the value."""
    if value is None:
        raise OnnxError("OptionalGetElement: there is no element")
    return value
