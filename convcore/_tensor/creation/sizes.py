"""zeros, ones, full, empty, eye, scalar_tensor: tensors of a size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from convcore._tensor import Tensor, contiguous_format, dtypes, memory_format, preserve_format
from convcore._tensor.creation.arguments import (
    DtypeLike,
    allocated,
    checked_int,
    checked_number,
    leaf,
    number_as,
    shape,
)
from convcore._tensor.creation.memory import empty_array
from convcore._tensor.creation.out import out_dtype
from convcore._tensor.device import check_device, is_meta
from convcore._tensor.meta import meta
from convcore._tensor.settings import unset


def _made(make: Callable, sizes: tuple[int, ...], kind: np.dtype, device: Any) -> np.ndarray:
    """Return what ``make`` makes of sizes and a dtype; on 'meta' without its memory."""
    return allocated(meta if is_meta(device) else make, sizes, dtype=kind)


def zeros(
    *sizes: Any,
    size: Sequence[int] | None = None,
    out: Tensor | None = None,
    dtype: DtypeLike = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor of zeros; the size is several ints or one sequence of ints.

    Examples
    --------
    >>> zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    check_device(device, layout)
    kind = dtypes.as_numpy(dtype) if out is None else out_dtype("zeros", out, dtype)
    array = _made(np.zeros, shape("zeros", sizes, size), kind, device)
    return leaf(array, requires_grad, device, out)


def ones(
    *sizes: Any,
    size: Sequence[int] | None = None,
    out: Tensor | None = None,
    dtype: DtypeLike = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor of ones; the size is several ints or one sequence of ints."""
    check_device(device, layout)
    kind = dtypes.as_numpy(dtype) if out is None else out_dtype("ones", out, dtype)
    array = _made(np.ones, shape("ones", sizes, size), kind, device)
    return leaf(array, requires_grad, device, out)


def empty(
    *sizes: Any,
    size: Sequence[int] | None = None,
    out: Tensor | None = None,
    dtype: DtypeLike = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: memory_format = contiguous_format,
) -> Tensor:
    """Return an uninitialised tensor; the size is several ints or one sequence of ints."""
    check_device(device, layout)
    if memory_format is preserve_format:
        raise RuntimeError("unsupported memory format Preserve")
    if memory_format is None:
        memory_format = contiguous_format
    make = partial(empty_array, memory_format=memory_format)
    kind = dtypes.as_numpy(dtype) if out is None else out_dtype("empty", out, dtype)
    array = unset(_made(make, shape("empty", sizes, size), kind, device))
    if out is not None and out._array.shape == array.shape:
        unset(out._array)
        return out
    return leaf(array, requires_grad, device, out)


def full(
    size: Sequence[int],
    fill_value: Any,
    *,
    out: Tensor | None = None,
    dtype: DtypeLike = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor filled with one number, of the dtype that `tensor` would give it by default.

    Raises
    ------
    RuntimeError
        The number does not fit into ``dtype``.
    """
    check_device(device, layout)
    if not isinstance(size, tuple | list):
        raise TypeError(
            f"full(): argument 'size' (position 1) must be tuple of ints, not {type(size).__name__}"
        )
    number = checked_number("full", fill_value)
    if out is not None:
        target = out_dtype("full", out, dtype)
    else:
        target = dtypes.number_dtype(number) if dtype is None else dtypes.as_numpy(dtype)
    make = partial(np.full, fill_value=number_as(number, target))
    array = _made(make, shape("full", (size,)), target, device)
    return leaf(array, requires_grad, device, out)


def eye(
    n: int,
    m: int | None = None,
    *,
    out: Tensor | None = None,
    dtype: DtypeLike = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Return an (n, m) matrix of zeros with ones on the diagonal; m defaults to n."""
    check_device(device, layout)
    rows, columns = checked_int("eye", "n", n), checked_int("eye", "m", n if m is None else m)
    for name, number in (("n", rows), ("m", columns)):
        if number < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {number}")
    kind = dtypes.as_numpy(dtype) if out is None else out_dtype("eye", out, dtype)
    array = _made(lambda sizes, dtype: np.eye(*sizes, dtype=dtype), (rows, columns), kind, device)
    return leaf(array, requires_grad, device, out)


def scalar_tensor(
    s: Any, *, dtype: DtypeLike = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return a 0-d tensor of one number, in the default dtype unless ``dtype`` is given."""
    return full((), s, dtype=dtypes.as_numpy(dtype), device=device, requires_grad=requires_grad)
