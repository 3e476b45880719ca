"""Tensors as MPI sees them: contiguous arrays of a type that it can add."""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore._tensor import Tensor


def checked(tensor: Any, name: str = "tensor") -> Tensor:
    """Return an argument that has to be a tensor.

    Raises
    ------
    TypeError
        It is none.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{name} must be a Tensor, but got {type(tensor).__name__}")
    return tensor


def checked_list(tensors: Any, name: str, size: int) -> list[Tensor]:
    """Return a list that has to hold a tensor for each process.

    Raises
    ------
    TypeError, ValueError
        It is no list of tensors, or not of that length.
    """
    if not isinstance(tensors, list | tuple):
        raise TypeError(f"{name} must be a list of Tensors, but got {type(tensors).__name__}")
    if len(tensors) != size:
        raise ValueError(f"{name} must have {size} tensors, one a process, but got {len(tensors)}")
    return [checked(tensor, f"{name}[{i}]") for i, tensor in enumerate(tensors)]


def described(tensor: Tensor) -> str:
    """Return how many elements of which dtype a tensor has, as processes tell one another."""
    return f"{tensor.numel()} x {str(tensor.dtype).removeprefix('torch.')}"


def as_bytes(array: np.ndarray) -> np.ndarray:
    """View a contiguous array as bytes, which MPI moves whatever they mean."""
    return array.reshape(-1).view(np.uint8)


def moved(tensor: Tensor) -> np.ndarray:
    """Copy a tensor's elements, in order, as bytes."""
    return as_bytes(np.array(tensor._array, order="C", ndmin=1))


def added(tensor: Tensor) -> np.ndarray:
    """Copy a tensor's elements, in order; bool, which MPI cannot add, as uint8."""
    array = np.array(tensor._array, order="C", ndmin=1).reshape(-1)
    return array.astype(np.uint8) if array.dtype == np.bool_ else array


def is_half(dtype: np.dtype) -> bool:
    """Return whether a dtype is a floating one of two bytes, which MPI does not know."""
    return dtype.itemsize == 2 and dtype.kind not in "iu"


def for_mpi(array: np.ndarray) -> np.ndarray:
    """View an array in a type that MPI knows, of the same size."""
    return array.view(np.uint16) if is_half(array.dtype) else array


def store(tensor: Tensor, array: np.ndarray) -> None:
    """Put elements, or the bytes of elements, into a tensor, in place."""
    own = tensor._array
    if array.dtype == np.uint8 and array.nbytes == own.nbytes:
        array = array.view(own.dtype)
    own[...] = array.reshape(own.shape).astype(own.dtype, copy=False)
    tensor._counter[0] += 1
