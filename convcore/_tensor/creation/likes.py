"""zeros_like, ones_like, full_like, empty_like: in the shape and memory format of a tensor."""

from __future__ import annotations

from typing import Any

from convcore._tensor import Tensor, memory_format, preserve_format
from convcore._tensor.creation.arguments import DtypeLike, checked_number, leaf, number_as
from convcore._tensor.creation.memory import array_like
from convcore._tensor.settings import unset


def zeros_like(
    input: Tensor,
    *,
    dtype: DtypeLike = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: memory_format = preserve_format,
) -> Tensor:
    """Return zeros of the size, dtype and memory format of ``input`` by default."""
    array = array_like("zeros_like", input, dtype, device, memory_format, layout)
    array.fill(0)
    return leaf(array, requires_grad, device or input.device)


def ones_like(
    input: Tensor,
    *,
    dtype: DtypeLike = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: memory_format = preserve_format,
) -> Tensor:
    """Return ones of the size, dtype and memory format of ``input`` by default."""
    array = array_like("ones_like", input, dtype, device, memory_format, layout)
    array.fill(1)
    return leaf(array, requires_grad, device or input.device)


def full_like(
    input: Tensor,
    fill_value: Any,
    *,
    dtype: DtypeLike = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: memory_format = preserve_format,
) -> Tensor:
    """Return a tensor of one number, in the size, dtype and memory format of ``input`` by default.

    Raises
    ------
    RuntimeError
        The number does not fit into the dtype.
    """
    array = array_like("full_like", input, dtype, device, memory_format, layout)
    array.fill(number_as(checked_number("full_like", fill_value), array.dtype))
    return leaf(array, requires_grad, device or input.device)


def empty_like(
    input: Tensor,
    *,
    dtype: DtypeLike = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: memory_format = preserve_format,
) -> Tensor:
    """Return an uninitialised tensor of the size, dtype and memory format of ``input``."""
    array = unset(array_like("empty_like", input, dtype, device, memory_format, layout))
    return leaf(array, requires_grad, device or input.device)
