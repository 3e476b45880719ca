"""Places that tensors of indices name: sums, and which value stays, where one is named twice."""

from __future__ import annotations

import math

import numpy as np

from convcore._tensor import Tensor

__all__: list[str] = []

# For each axis of a tensor, or run of axes under a mask, a tensor of ints, a mask or None.
Indices = tuple[Tensor | None, ...]


def add_at(array: np.ndarray, indices: Indices, values: np.ndarray) -> None:
    """Add values to an array at indices; repeated indices accumulate.

    What goes to one place is summed in the order in which it is named, whatever the machine does.
    """
    where = Places(indices, array.shape)
    rows = where.rows_of(values)
    front = array.transpose(where.axes + where.rest)
    order = np.argsort(where.numbers, kind="stable")
    ordered = where.numbers[order]
    first = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    if not len(ordered):
        return
    if len(first) < len(ordered):
        rows = np.add.reduceat(rows[order], first, axis=0, dtype=rows.dtype)
        places = ordered[first]
    else:
        places = where.numbers
    front[np.unravel_index(places, where.sizes)] += rows


class Places:
    """Where indices point, as numbers, counted over the axes that they are for.

    Attributes
    ----------
    axes, rest : the axes that are indexed, and the others
    sizes : of the indexed axes
    numbers : one number, flat over those axes, for each place that is named
    shape : in which the indices broadcast
    result : the shape of what the indices give
    """

    def __init__(self, indices: Indices, shape: tuple[int, ...]):
        axes: list[int] = []
        arrays: list[np.ndarray] = []
        axis = 0
        for index in indices:
            if index is None:
                axis += 1
                continue
            array = index._array
            parts = np.nonzero(array) if array.dtype.kind == "b" else (array,)
            arrays += parts
            axes += range(axis, axis + len(parts))
            axis += len(parts)
        self.axes = axes
        self.rest = [axis for axis in range(len(shape)) if axis not in axes]
        self.sizes = tuple([shape[axis] for axis in axes])
        self.shape = np.broadcast_shapes(*(array.shape for array in arrays))
        number = np.zeros((), np.intp)
        for array, size in zip(arrays, self.sizes, strict=True):
            number = number * size + np.where(array < 0, array + size, array)
        self.numbers = np.ascontiguousarray(np.broadcast_to(number, self.shape)).reshape(-1)
        adjacent = axes[-1] - axes[0] + 1 == len(axes)
        self._start = axes[0] if adjacent else 0
        self._rest_shape = tuple([shape[axis] for axis in self.rest])
        self.result = (
            *self._rest_shape[: self._start],
            *self.shape,
            *self._rest_shape[self._start :],
        )

    def rows_of(self, values: np.ndarray) -> np.ndarray:
        """Return values, which broadcast to the result, with one row for each number."""
        values = np.broadcast_to(values, self.result)
        n_axes = len(self.shape)
        values = np.moveaxis(values, range(self._start, self._start + n_axes), range(n_axes))
        return values.reshape(self.numbers.size, *self._rest_shape)

    def overwritten(self) -> np.ndarray | None:
        """Return which places of the result another, later one writes over; None if none is."""
        count = self.numbers.size
        owner = np.empty(math.prod(self.sizes), np.intp)
        owner[self.numbers] = np.arange(count)
        lost = owner[self.numbers] != np.arange(count)
        if not lost.any():
            return None
        return lost.reshape(*self.shape, *(1,) * (len(self._rest_shape) - self._start))
