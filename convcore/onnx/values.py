"""Values of ONNX as convcore's: tensors, arrays of what tensors cannot hold, dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import convcore
from convcore import Tensor
from convcore._tensor.reads import is_static, mark_static
from convcore.engine.runtime.errstate import quiet
from convcore.onnx.errors import OnnxError
from convcore.onnx.external import ExternalData, is_external
from convcore.onnx.naming import quoted

# What flows between nodes: a tensor; an array of strings or of small floats; a sequence; nothing.
Value = Any


def value_of(array: np.ndarray) -> Value:
    """Return an array as a tensor, or as it is where tensors have no such dtype."""
    array = np.asarray(array)
    if array.dtype.name == "bfloat16":
        return convcore.from_numpy(array.astype(np.float32)).to(convcore.bfloat16)
    if array.dtype.kind in "biufc" and array.dtype.isbuiltin != 2:  # of no library's own
        array = np.ascontiguousarray(array).reshape(array.shape)
        if not array.flags.writeable:
            array = array.copy()
        return convcore.from_numpy(array)
    return array


def array_of(value: Value) -> np.ndarray:
    """Return a value as an array, without its gradient."""
    if not isinstance(value, Tensor):
        return np.asarray(value)
    if value.dtype is convcore.bfloat16:
        return _bfloat16(array_of(value.detach().to(convcore.float32)))
    return value._array if is_static(value) else value.detach().numpy()


def _bfloat16(array: np.ndarray) -> np.ndarray:
    return array.astype(helper.tensor_dtype_to_np_dtype(TensorProto.BFLOAT16))


def constant_of(proto: TensorProto, external: ExternalData | None = None) -> Value:
    """Return a stored tensor as a value.

    Raises
    ------
    OnnxError
        Its data does not fit its shape, or its type is unknown.
    """
    try:
        if is_external(proto):
            value = value_of((external or ExternalData()).array(proto))
        else:
            value = value_of(numpy_helper.to_array(proto))
    except OnnxError:
        raise
    except (ValueError, TypeError, KeyError, OSError) as error:
        raise OnnxError(f"tensor {quoted(proto.name)} cannot be read: {error}") from error
    if isinstance(value, Tensor):
        mark_static(value)
    return value


def dtype_of(code: int) -> np.dtype:
    """Return the NumPy dtype of an ONNX type's number.

    Raises
    ------
    OnnxError
        There is no type of that number.
    """
    try:
        return np.dtype(helper.tensor_dtype_to_np_dtype(code))
    except KeyError:
        raise OnnxError(f"unknown data type {code}") from None


def integers(value: Value) -> list[int]:
    """Return a value as a list of ints: an axes, shape or repeats input."""
    return [int(each) for each in array_of(value).reshape(-1)]


def axis_of(axis: int, rank: int) -> int:
    """Return an axis counted from the front.

    Raises
    ------
    OnnxError
        There is no such axis.
    """
    if not -rank <= axis < rank:
        raise OnnxError(f"axis {axis} of {rank} axes: allowed are {-rank} to {rank - 1}")
    return axis % rank


def by_numpy(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of values that computes on their arrays."""

    def compute(*values: Value, **options: Any) -> Any:
        arrays = [None if v is None else array_of(v) for v in values]
        result = quiet(function, *arrays, **options)
        if isinstance(result, tuple):
            return tuple(value_of(each) for each in result)
        return value_of(result)

    return compute


def is_differentiable(value: Value) -> bool:
    """Return whether a value is a tensor of floats, so that a gradient can pass through it."""
    return (
        isinstance(value, Tensor)
        and value.is_floating_point()
        and value.dtype is not convcore.bfloat16
    )
