"""New arrays in a memory format, or with the axis order of another array."""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore._tensor import (
    Tensor,
    channels_last,
    channels_last_3d,
    contiguous_format,
    dtypes,
    memory_format,
    preserve_format,
)
from convcore._tensor.creation.arguments import DtypeLike, check_tensor, too_large
from convcore._tensor.device import check_device, is_meta
from convcore._tensor.meta import MetaArray, meta
from convcore.engine.runtime import layout

Format = memory_format


def array_like(
    function: str,
    input: Tensor,
    dtype: DtypeLike,
    device: Any,
    memory_format: memory_format,
    layout: Any = None,
) -> np.ndarray:
    """Return the uninitialised array of a ``_like`` function, after the checks of its arguments."""
    check_tensor(function, "input", input)
    check_device(device, layout)
    array = np.asarray(input._array)
    target = array.dtype if dtype is None else dtypes.as_numpy(dtype)
    if is_meta(device or input.device):
        return meta(array.shape, target)
    if memory_format is preserve_format or memory_format is None:
        return empty_preserving(array, target)
    return empty_array(array.shape, target, memory_format)


def empty_array(
    shape: tuple[int, ...], dtype: np.dtype, memory_format: memory_format
) -> np.ndarray:
    """Return a new array in a memory format other than preserve_format."""
    if memory_format is contiguous_format:
        return np.empty(shape, dtype)
    check_format(memory_format)
    rank = {channels_last: 4, channels_last_3d: 5}[memory_format]
    if len(shape) != rank:
        raise RuntimeError(f"required rank {rank} tensor to use {memory_format._name} format")
    return layout.empty(shape, dtype, channels_last=True)


def check_format(memory_format: Any) -> None:
    """Raise TypeError unless an argument is a memory format."""
    if not isinstance(memory_format, Format):
        raise TypeError(
            "argument 'memory_format' must be torch.memory_format, not "
            f"{type(memory_format).__name__}"
        )


def empty_preserving(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return a new array with the shape and the axis order of another (preserve_format).

    If ``array`` is dense, the strides are the same, also those of axes of size 1: they decide which
    memory format a batch of one-pixel images has.
    """
    if isinstance(array, MetaArray):
        return meta(array.shape, dtype)
    try:
        new = np.empty_like(array, dtype, subok=False)  # dense, and often just right
    except ValueError:
        raise too_large(array.shape) from None
    if not array.size or (dtype.itemsize == array.itemsize and new.strides == array.strides):
        return new
    axes = _axes_in_memory(array)
    steps, step = [0] * array.ndim, dtype.itemsize
    for axis in axes:
        steps[axis] = step
        step *= array.shape[axis]
    item = array.itemsize
    found = [stride // item * dtype.itemsize for stride in array.strides]
    is_dense = all(
        size == 1 or step == stride
        for size, step, stride in zip(array.shape, steps, found, strict=True)
    )
    memory = np.empty(array.size, dtype)
    return np.ndarray(array.shape, dtype, memory, 0, found if is_dense else steps)


def _axes_in_memory(array: np.ndarray) -> list[int]:
    """Return the axes from the smallest stride to the largest.

    An insertion sort that skips axes of stride 0, whose order is undefined; they end up where
    PyTorch puts them.
    """
    axes = list(reversed(range(array.ndim)))
    for here in range(1, len(axes)):
        for there in reversed(range(here)):
            first, second = axes[there], axes[here]
            order = _order(array, first, second)
            if order < 0:
                break
            if order > 0:
                axes[there], axes[here] = second, first
                here = there
    return axes


def _order(array: np.ndarray, first: int, second: int) -> int:
    """Return 1 if the second axis has the smaller stride, -1 if the larger one, 0 if unknown."""
    strides = abs(array.strides[first]), abs(array.strides[second])
    if 0 in strides:
        return 0
    if strides[0] == strides[1]:
        return int(array.shape[first] > array.shape[second])
    return 1 if strides[0] > strides[1] else -1
