"""Reordered and repeated elements: flip, roll, rot90, repeat, tile."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, wrap
from convcore._tensor.creation.arguments import checked_int
from convcore._tensor.creation.memory import empty_preserving
from convcore.autograd.node import record
from convcore.functions._support.arguments import check_tensor, ints
from convcore.functions._support.axes import wrap_dim
from convcore.functions.shapes.broadcast import sum_to
from convcore.functions.shapes.shape import reshape, wrap_dims

__all__ = ["flip", "fliplr", "flipud", "roll", "rot90", "tile"]


def flip(input: Tensor, dims: Any, *more: int) -> Tensor:
    """Return a copy with the order along some axes reversed."""
    check_tensor("flip", input)
    array = input._array
    axes = wrap_dims(ints("flip", "dims", dims, more), array.ndim)
    out = empty_preserving(array, array.dtype)
    out[...] = np.flip(array, axes) if array.ndim else array
    out = wrap(out)
    record("FlipBackward0", (input,), out, lambda needs, grad: flip(grad, axes))
    return out


def fliplr(input: Tensor) -> Tensor:
    """Return a copy with the columns in the opposite order."""
    check_tensor("fliplr", input)
    if input._array.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(input, 1)


def flipud(input: Tensor) -> Tensor:
    """Return a copy with the rows in the opposite order."""
    check_tensor("flipud", input)
    if input._array.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(input, 0)


@names_arguments
def roll(input: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    """Return a copy moved along some axes; what leaves at the end comes in at the start.

    Parameters
    ----------
    input : Tensor
    shifts : int, or one for each axis of ``dims``
    dims : int or ints; without them the elements are moved as if along one axis.
    """
    check_tensor("roll", input)
    rank = input._array.ndim
    steps = ints("roll", "shifts", shifts)
    if not steps:
        raise RuntimeError("`shifts` required")
    if dims is None or dims == () or dims == []:
        if len(steps) != 1:
            raise RuntimeError(f"shifts and dimensions must align. shifts: {len(steps)}, dims:{0}")
        axes = None
    else:
        axes = ints("roll", "dims", dims)
        if len(steps) != len(axes):
            raise RuntimeError(
                f"shifts and dimensions must align. shifts: {len(steps)}, dims:{len(axes)}"
            )
        axes = tuple([wrap_dim(axis, rank) for axis in axes])
    return _roll(input, steps, axes)


def _roll(x: Tensor, steps: tuple[int, ...], axes: tuple[int, ...] | None) -> Tensor:
    out = wrap(np.roll(x._array, steps if axes is not None else steps[0], axes))
    back = tuple([-step for step in steps])
    record("RollBackward0", (x,), out, lambda needs, grad: _roll(grad, back, axes))
    return out


@names_arguments
def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Return a copy turned k times by 90 degrees, from axis dims[0] towards dims[1]."""
    check_tensor("rot90", input)
    k, dims = checked_int("rot90", "k", k), ints("rot90", "dims", dims)
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if input._array.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {input._array.ndim}")
    a, b = (wrap_dim(dim, input._array.ndim) for dim in dims)
    if a == b:
        raise RuntimeError(
            f"expected rotation dims to be different, but got dim0 = {a} and dim1 = {b}"
        )
    out = wrap(np.rot90(input._array, k, (a, b)).copy(order="K"))
    record("Rot90Backward0", (input,), out, lambda needs, grad: rot90(grad, -k, (a, b)))
    return out


@names_arguments
def repeat(self: Tensor, repeats: Any, *more: int) -> Tensor:
    """Return the tensor repeated along its axes, and along new ones before them.

    Raises
    ------
    RuntimeError
        There are fewer numbers than axes, or one is negative.
    """
    array = self._array
    times = ints("repeat", "repeats", repeats, more)
    new = len(times) - array.ndim
    if new < 0:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of "
            "tensor"
        )
    shape = (*(1,) * new, *array.shape)
    sizes = [count * size for count, size in zip(times, shape, strict=True)]
    if times and min(times) < 0:
        first = next(size for count, size in zip(times, sizes, strict=True) if count < 0)
        raise RuntimeError(f"Trying to create tensor with negative dimension {first}: {sizes}")
    if math.prod(sizes) * array.itemsize >= 2**63:  # where NumPy's tile crashes
        raise RuntimeError(f"Storage size calculation overflowed with sizes={sizes}")
    out = wrap(np.tile(array, times) if times else array.copy())
    # Every axis as two, repetition and place: the gradient is the sum over the repetitions.
    apart = [n for pair in zip(times, shape, strict=True) for n in pair]
    once = tuple([n for size in shape for n in (1, size)])
    before = array.shape
    record(
        "RepeatBackward0",
        (self,),
        out,
        lambda needs, grad: reshape(sum_to(reshape(grad, apart), once), before),
    )
    return out


def tile(input: Tensor, dims: Any, *more: int) -> Tensor:
    """Return the tensor repeated along its last axes, as NumPy's tile does."""
    check_tensor("tile", input)
    times = ints("tile", "dims", dims, more)
    return repeat(input, (*(1,) * (input._array.ndim - len(times)), *times))


def _reversed(self: Tensor) -> Tensor:
    """Return a copy in the opposite order along the first axis: what ``reversed`` gives."""
    return flip(self, 0) if self._array.ndim else self


METHODS = {"__reversed__": _reversed, "repeat": repeat}
