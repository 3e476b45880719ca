"""as_strided and its relatives: views with given strides, and shapes set in place.

The methods that set a tensor's own shape, such as unsqueeze_, leave its memory as it is: in the
graph they change the tensor alone, and not the base that it may be a view of.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore._tensor.creation.arguments import checked_int
from convcore._tensor.meta import MetaArray, meta
from convcore.autograd import views
from convcore.autograd.node import needs_history
from convcore.autograd.region import Region
from convcore.engine.runtime.storages import may_overlap, memory_of
from convcore.functions._support.arguments import check_tensor, ints
from convcore.functions.shapes.shape import squeeze, swapaxes, t, transpose, unsqueeze

__all__ = ["as_strided"]


def as_strided(
    input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """Return a view of a tensor's memory with the given shape and strides.

    Elements may be seen several times; the gradients of all their places add up.

    Parameters
    ----------
    input : Tensor
    size : ints
    stride : ints, not negative
        For each axis, how many elements of the memory one step is.
    storage_offset : int or None
        How many elements of the memory lie before the first one; as many as before the first one
        of ``input`` if it is None.

    Raises
    ------
    RuntimeError
        ``size`` and ``stride`` are not of one length, or negative; the view would reach beyond the
        memory; or, where a gradient is wanted, see other elements than those of ``input``.

    Examples
    --------
    >>> import convcore
    >>> convcore.arange(4).as_strided((3, 2), (1, 1))
    tensor([[0, 1],
            [1, 2],
            [2, 3]])
    """
    check_tensor("as_strided", input)
    array = input._array
    sizes, steps = (ints("as_strided", *one) for one in (("size", size), ("stride", stride)))
    part = _part(array, sizes, steps, storage_offset)
    backward: Any = None
    if needs_history(input):
        region = _region(array, part)
        backward = lambda needs, grad: region.whole_of(grad)  # noqa: E731
    return views.view(input, part, "AsStridedBackward0", backward)


def _part(
    array: np.ndarray, sizes: tuple[int, ...], steps: tuple[int, ...], offset: int | None
) -> np.ndarray:
    """Return the view of an array's memory; on meta, where there is none, of any size."""
    if offset is not None:
        offset = checked_int("as_strided", "storage_offset", offset)
    if isinstance(array, MetaArray):
        _check(sizes, steps, offset or 0, array.itemsize, sys.maxsize)
        return meta(sizes, array.dtype)
    memory = memory_of(array)
    if offset is None:
        offset = (_address(array) - _address(memory)) // array.itemsize
    _check(sizes, steps, offset, array.itemsize, memory.nbytes)
    start = offset * array.itemsize
    if 0 in sizes:  # an offset beyond the memory is allowed, but NumPy checks it
        start = min(start, memory.nbytes)
    strides = [step * array.itemsize for step in steps]
    part = np.ndarray(sizes, array.dtype, memory, start, strides)
    part.flags.writeable = array.flags.writeable
    return part


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def _check(
    sizes: tuple[int, ...], steps: tuple[int, ...], offset: int, itemsize: int, n_bytes: int
) -> None:
    if len(sizes) != len(steps):
        raise RuntimeError("mismatch in length of strides and shape")
    if min(steps, default=0) < 0:
        raise RuntimeError(
            "as_strided: Negative strides are not supported at the moment, got strides: "
            f"{list(steps)}"
        )
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    if min(sizes, default=0) < 0:
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(sizes)} and "
            f"strides={list(steps)}"
        )
    last = sum((size - 1) * step for size, step in zip(sizes, steps, strict=True))
    needed = 0 if 0 in sizes else (offset + last + 1) * itemsize
    if needed > n_bytes:
        raise RuntimeError(
            f"setStorage: sizes {list(sizes)}, strides {list(steps)}, storage offset {offset}, and "
            f"itemsize {itemsize} requiring a storage size of {needed} are out of bounds for "
            f"storage of size {n_bytes}"
        )


def _region(array: np.ndarray, part: np.ndarray) -> Region:
    """Return where the view is in a tensor that requires grad."""
    low, high = np.lib.array_utils.byte_bounds(array)
    part_low, part_high = np.lib.array_utils.byte_bounds(part)
    inside = not part.size or low <= part_low <= part_high <= high
    if not inside or high - low != array.nbytes or may_overlap(array):
        raise RuntimeError(
            "as_strided, of a tensor that requires grad, needs all elements that it sees to be in "
            "the tensor, and each at a place of its own: take the view of the tensor that this one "
            "is a view of, or clone() it first"
        )
    return Region(array, part)


# A tensor's own shape


def _set_in_place(function: Callable) -> Callable:
    """Return the method by which a tensor becomes its own view, ``function`` of it."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        views.check_writable(self)
        before = wrap(self._array)
        before._grad_fn, before._output_nr = self.grad_fn, self._output_nr
        before._requires_grad = self._requires_grad
        after = function(before, *args, **kwargs)
        self._array = after._array
        self._counter[0] += 1
        views.take_shape(self, after)
        return self

    method.__name__ = method.__qualname__ = f"{function.__name__}_"
    method.__wrapped__ = function  # type: ignore[attr-defined]  # help() shows its arguments
    method.__doc__ = f"Give the tensor the shape of its `{function.__name__}`, and keep its memory."
    return method


METHODS = {
    f"{function.__name__}_": _set_in_place(function)
    for function in (as_strided, squeeze, swapaxes, t, transpose, unsqueeze)
}
METHODS["swapdims_"] = METHODS["transpose_"]
