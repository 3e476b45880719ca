"""Buckets: flat arrays that hold the gradients of several parameters, to be reduced at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore.distributed.alone import Done
from convcore.distributed.buffers import is_half
from convcore.futures import Future

# Bytes of a gradient from which on it is no longer copied to be reduced with others: a message of
# its own takes some 20 us, and to copy it there and back some 300.
LARGE = 1024 * 1024


def order_of_axes(array: np.ndarray) -> list[int]:
    """Return the axes of an array in the order of its memory; those of length 1 come first."""
    steps = [s if n > 1 else np.inf for s, n in zip(array.strides, array.shape, strict=True)]
    return sorted(range(array.ndim), key=lambda axis: -steps[axis])


class Layout:
    """Shape, dtype and order of axes in memory of a parameter, whose gradient is stored likewise.

    Parameters
    ----------
    array : ndarray
    """

    def __init__(self, array: np.ndarray):
        self.dtype = array.dtype
        self.size = array.size
        self.nbytes = array.nbytes
        self._axes = order_of_axes(array)
        self._ordered = [array.shape[axis] for axis in self._axes]

    def view(self, flat: np.ndarray) -> np.ndarray:
        """View a run of elements in this shape and order."""
        return flat.reshape(self._ordered).transpose(np.argsort(self._axes))

    def flat(self, array: np.ndarray, dtype: np.dtype) -> np.ndarray | None:
        """View an array of this order and a dtype as a run of elements; None where it is not."""
        ordered = array.transpose(self._axes)
        fits = ordered.flags.c_contiguous and ordered.flags.writeable
        return ordered.reshape(-1) if fits and array.dtype == dtype else None


class Bucket:
    """Gradients that are reduced at once; a large one alone, in the memory where it is.

    Parameters
    ----------
    members : list of int
        Numbers of parameters.
    layouts : list of Layout
        Of all parameters.

    Attributes
    ----------
    elements : ndarray, 1-d
    views : dict
        Each member's elements as its parameter is laid out.
    """

    def __init__(self, members: list[int], layouts: list[Layout]):
        self.members = members
        self._layouts = [layouts[i] for i in members]
        dtype = self._layouts[0].dtype
        self._dtype = np.dtype(np.float32) if is_half(dtype) else dtype  # MPI cannot add halves
        self._size = sum(layout.size for layout in self._layouts)
        self.nbytes = self._size * self._dtype.itemsize
        self._in_place = len(members) == 1 and layouts[members[0]].nbytes >= LARGE
        self._hold(np.empty(0 if self._in_place else self._size, self._dtype))
        self.reset()

    def _hold(self, elements: np.ndarray) -> None:
        self.elements = elements
        self.views: dict[int, np.ndarray] = {}
        if elements.size == self._size:
            ends = np.cumsum([layout.size for layout in self._layouts])[:-1]
            parts = zip(self.members, self._layouts, np.split(elements, ends), strict=True)
            self.views = {i: layout.view(part) for i, layout, part in parts}

    def reset(self) -> None:
        """Prepare for the next pass."""
        self.missing = len(self.members)
        self.request: Any = Done()
        self.future: Future | None = None
        self.taken: np.ndarray | None = None
        if self._in_place:
            self._hold(np.empty(0, self._dtype))

    def take(
        self, i: int, gradient: np.ndarray | None, factor: float, copies: bool = False
    ) -> None:
        """Take a member's gradient times a factor, or 0 where there is none.

        With ``copies`` the gradient's memory is left as it is, for somebody else works in it.
        """
        if self._in_place:
            own = None if copies else gradient
            flat = None if own is None else self._layouts[0].flat(own, self._dtype)
            self.taken = None if flat is None else gradient
            self._hold(np.empty(self._size, self._dtype) if flat is None else flat)
        view = self.views[i]
        if gradient is None:
            view[...] = 0
        else:
            same = gradient.astype(view.dtype, copy=False)
            np.multiply(same, view.dtype.type(factor), out=view)

    def is_reduced(self) -> bool:
        """Return whether its reduction, once begun, is done."""
        return self.request.Test() and (self.future is None or self.future.done())

    def clear(self) -> None:
        """Take 0 for all members."""
        for i in self.members:
            self.take(i, None, 0)

    def replace(self, value: Any) -> None:
        """Store what a communication hook made of the elements."""
        tensor = value[0] if isinstance(value, list | tuple) and value else value
        if not isinstance(tensor, Tensor) or tensor._array.size != self._size:
            raise TypeError(
                "the Future of a communication hook must give a Tensor of the bucket's "
                f"{self._size} elements, but gave {type(value).__name__}"
            )
        np.copyto(self.elements, tensor._array.reshape(-1), casting="unsafe")


def buckets_of(order: list[int], layouts: list[Layout], first: int, others: int) -> list[Bucket]:
    """Cut an order of parameters into buckets of one dtype and about some bytes each.

    They are in the order in which they become full; large gradients do not divide small ones.
    """
    groups: list[list[int]] = []
    small: list[int] = []
    held, limit = 0, first
    for i in order:
        layout = layouts[i]
        if layout.nbytes >= LARGE:
            groups.append([i])
            continue
        if small and (layouts[small[0]].dtype != layout.dtype or held >= limit):
            groups.append(small)
            small, held, limit = [], 0, others
        small.append(i)
        held += layout.nbytes
    return [Bucket(members, layouts) for members in [*groups, small] if members]


class GradBucket:
    """A bucket of gradients as a communication hook sees it.

    Gradients have this rank's weight: their sum over ranks, divided by the number of ranks, is the
    mean over all samples.
    """

    def __init__(self, bucket: Bucket, index: int, last: bool, parameters: list[Any]):
        self._bucket = bucket
        self._index = index
        self._last = last
        self._parameters = parameters
        self._buffer = wrap(bucket.elements)

    def index(self) -> int:
        """Return the bucket's number; the first has the gradients that came first."""
        return self._index

    def is_last(self) -> bool:
        """Return whether it is the last bucket of the pass."""
        return self._last

    def buffer(self) -> Tensor:
        """Return all gradients, joined, in one dimension: the bucket's memory, or what was set."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Have `buffer` return another tensor."""
        self._buffer = buffer

    def gradients(self) -> list[Tensor]:
        """Return the gradient of each parameter: views of the bucket's memory."""
        return [wrap(view) for view in self._bucket.views.values()]

    def parameters(self) -> list[Any]:
        """Return the parameters."""
        return [self._parameters[i] for i in self._bucket.members]
