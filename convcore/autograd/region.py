"""The region of a base's memory that a view covers, and gradients between the two.

However many steps led to a view, it is one strided pattern of addresses in its base's memory: a
view of a view costs no more than a view.
"""

from __future__ import annotations

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore.autograd.node import record
from convcore.engine.runtime.storages import may_overlap, span_of

# How an array lies in a piece of memory: its shape, dtype, first byte and strides.
_Place = tuple[tuple[int, ...], np.dtype, int, tuple[int, ...]]


class Region:
    """The places of a base and of one of its views in the memory that the base spans.

    Parameters
    ----------
    base, view : ndarray
        Only their addresses are read; no reference is kept.

    Raises
    ------
    RuntimeError
        The view is not inside the base's memory.
    """

    __slots__ = ("extent", "overlaps", "part", "whole")

    def __init__(self, base: np.ndarray, view: np.ndarray) -> None:
        low, high = span_of(base)
        part_low, part_high = span_of(view)
        if view.size and not low <= part_low <= part_high <= high:
            raise RuntimeError(
                "a tensor and a view of it do not share their memory any more: the data of one of "
                "them was replaced"
            )
        self.extent = high - low
        self.whole = _place(base, low)
        self.part = _place(view, low)
        self.overlaps = may_overlap(view)

    def part_of(self, x: Tensor) -> Tensor:
        """Return the elements at the view's place, of a tensor like the base."""
        if self.part == self.whole:
            return x
        array = x._array
        in_place = array.flags.c_contiguous and array.strides == self.whole[3]
        out = wrap(_at(array if in_place else self._laid_out(array), self.part).copy(order="K"))
        record("AsStridedBackward0", (x,), out, lambda needs, grad: self.whole_of(grad))
        return out

    def whole_of(self, x: Tensor) -> Tensor:
        """Return a tensor like the base, ``x`` at the view's place and zeros elsewhere; adjoint."""
        if self.part == self.whole:
            return x
        memory = np.zeros(self.extent, np.uint8)
        if self.overlaps:
            _add_at(memory, self.part, x._array)
        else:
            _at(memory, self.part)[...] = x._array
        out = wrap(_at(memory, self.whole))
        record("AsStridedScatterBackward0", (x,), out, lambda needs, grad: self.part_of(grad))
        return out

    def outside(self, x: Tensor) -> Tensor:
        """Return ``x`` with zeros at the view's place; the operation is its own adjoint."""
        memory = self._laid_out(x._array)
        _at(memory, self.part)[...] = 0
        out = wrap(_at(memory, self.whole))
        record("CopySlices", (x,), out, lambda needs, grad: self.outside(grad))
        return out

    def _laid_out(self, array: np.ndarray) -> np.ndarray:
        """Return new memory that holds the array in the layout of the base."""
        memory = np.zeros(self.extent, np.uint8)  # zeros, for the base may have gaps
        _at(memory, self.whole)[...] = array
        return memory


def _place(array: np.ndarray, low: int) -> _Place:
    offset = array.__array_interface__["data"][0] - low if array.size else 0
    return array.shape, array.dtype, offset, array.strides


def _at(memory: np.ndarray, place: _Place) -> np.ndarray:
    shape, dtype, offset, strides = place
    return np.ndarray(shape, dtype, memory, offset, strides)


def _add_at(memory: np.ndarray, place: _Place, array: np.ndarray) -> None:
    """Add to elements that may overlap."""
    shape, dtype, offset, strides = place
    index = np.full(shape, offset // dtype.itemsize)
    for axis, step in enumerate(strides):
        along = np.arange(shape[axis]) * (step // dtype.itemsize)
        index += along.reshape(-1, *[1] * (len(shape) - axis - 1))
    np.add.at(memory.view(dtype), index, array)
