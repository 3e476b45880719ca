"""Views of parts: select, narrow, unfold, diagonal; and triangles.

The gradient of such a view is placed into zeros, `placed`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, wrap
from convcore._tensor.creation.arguments import checked_int, too_large
from convcore._tensor.meta import empty_beside
from convcore.autograd import views
from convcore.autograd.node import describe, record
from convcore.engine.integers import as_int
from convcore.functions._support.arguments import check_tensor
from convcore.functions._support.axes import wrap_dim
from convcore.functions._support.in_place import in_place_methods
from convcore.functions.shapes.convert import clone
from convcore.functions.shapes.shape import unsqueeze

__all__ = ["diag", "diag_embed", "diagonal", "narrow", "select", "tril", "triu"]


Step = Callable[[np.ndarray], np.ndarray]  # makes a view of an array


def picked(x: Tensor, step: Step, name: str) -> Tensor:
    """Return the view that ``step`` makes of x: some of its elements, each once."""
    array = x._array
    shape = array.shape
    out = views.view(x, step(array), name, lambda needs, grad: placed(grad, shape, step, name))
    describe(out, forward=step)
    return out


def placed(x: Tensor, shape: tuple[int, ...], step: Step, name: str) -> Tensor:
    """Return zeros in which the view that ``step`` makes is ``x``: the adjoint of `picked`."""
    array = np.zeros(shape, x._array.dtype)
    step(array)[...] = x._array
    out = wrap(array)
    record(f"{name[:-1]}Backward0", (x,), out, lambda needs, grad: picked(grad, step, name))
    return out


def along(axis: int, item: Any) -> Step:
    """Return the step that indexes one axis by an int or a slice; always gives an array."""
    return itemgetter((*(slice(None),) * axis, item, ...))


@names_arguments
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """Return a view of one slice along an axis, which is removed.

    Raises
    ------
    IndexError
        There is no such axis, or no such place.
    """
    check_tensor("select", input)
    shape = input._array.shape
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    axis = wrap_dim(dim, len(shape))
    place = as_int(index)
    if not -shape[axis] <= place < shape[axis]:
        raise IndexError(
            f"select(): index {place} out of range for tensor of size {list(shape)} at "
            f"dimension {axis}"
        )
    return picked(input, along(axis, place), "SelectBackward0")


@names_arguments
def narrow(input: Tensor, dim: int, start: int | Tensor, length: int) -> Tensor:
    """Return a view of ``length`` elements of an axis from ``start`` on.

    Raises
    ------
    IndexError
        ``start`` is outside the axis.
    RuntimeError
        There are not as many places.
    """
    check_tensor("narrow", input)
    shape = input._array.shape
    if not shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    axis = wrap_dim(dim, len(shape))
    if isinstance(start, Tensor) and (start._array.ndim or start._array.dtype.kind not in "iu"):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    first, size = as_int(start), shape[axis]
    length = as_int(length)
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if not -size <= first <= size:
        raise IndexError(
            f"start out of range (expected to be in range of [{-size}, {size}], but got {first})"
        )
    first += size if first < 0 else 0
    if first + length > size:
        raise RuntimeError(f"start ({first}) + length ({length}) exceeds dimension size ({size}).")
    return slice_of(input, axis, first, first + length)


def slice_of(x: Tensor, axis: int, start: int, stop: int, step: int = 1) -> Tensor:
    """Return a view of every step-th element of an axis in [start, stop)."""
    return picked(x, along(axis, slice(start, stop, step)), "SliceBackward0")


def windows(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Return a view of the windows of ``size`` elements along an axis, ``step`` apart.

    The axis counts the windows then, and a new last axis counts the places of one.

    Raises
    ------
    IndexError
        There is no such axis.
    RuntimeError
        The axis is shorter than a window, or ``size`` or ``step`` is too small.

    Examples
    --------
    >>> import convcore
    >>> convcore.tensor([1, 2, 3, 4]).unfold(0, 2, 1)
    tensor([[1, 2],
            [2, 3],
            [3, 4]])
    """
    axis = wrap_dim(dimension, self._array.ndim)
    size, step = checked_int("unfold", "size", size), checked_int("unfold", "step", step)
    if not self._array.ndim:  # one window, which no axis counts
        return select(windows(unsqueeze(self, 0), 0, size, step), 0, 0)
    length = self._array.shape[axis]
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > length:
        raise RuntimeError(
            f"maximum size for tensor at dimension {axis} is {length} but size is {size}"
        )
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    return _windows(self, axis, size, step)


def _windows(x: Tensor, axis: int, size: int, step: int) -> Tensor:
    array = x._array
    shape, strides = array.shape, array.strides
    n_windows = (shape[axis] - size) // step + 1
    step = min(step, max(shape[axis], 1))  # of one window it may be any
    result = (*shape[:axis], n_windows, *shape[axis + 1 :], size)
    steps = (*strides[:axis], strides[axis] * step, *strides[axis + 1 :], strides[axis])
    try:
        windows = np.lib.stride_tricks.as_strided(array, result, steps, subok=True)
    except ValueError:
        raise too_large(result) from None

    def backward(needs: tuple[bool, ...], grad: Tensor) -> Tensor:
        return _windows_added(grad, axis, size, step, shape)

    return views.view(x, windows, "UnfoldBackward0", backward)


def _windows_added(x: Tensor, axis: int, size: int, step: int, shape: tuple[int, ...]) -> Tensor:
    """Return the sum of windows where they overlap: the adjoint of `_windows`."""
    array = np.zeros(shape, x._array.dtype)
    reach = x._array.shape[axis] * step
    for place in range(size):  # no two windows have the same element at the same place
        along(axis, slice(place, place + reach, step))(array)[...] += x._array[..., place]
    out = wrap(array)
    record(
        "UnfoldBackwardBackward0", (x,), out, lambda needs, grad: _windows(grad, axis, size, step)
    )
    return out


@names_arguments
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return the view of the diagonals of the matrices that two axes make, as the last axis.

    Parameters
    ----------
    input : Tensor
    offset : how far right of the main diagonal
    dim1, dim2 : the axes of the rows and of the columns

    Raises
    ------
    RuntimeError
        ``dim1`` and ``dim2`` are the same axis.
    """
    check_tensor("diagonal", input)
    rank = input._array.ndim
    a, b = wrap_dim(dim1, rank), wrap_dim(dim2, rank)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")

    step = partial(diagonal_of, offset=as_int(offset), a=a, b=b)
    return picked(input, step, "DiagonalBackward0")


def diagonal_of(array: np.ndarray, offset: int = 0, a: int = 0, b: int = 1) -> np.ndarray:
    """Return the view of a diagonal that may be written to if the array may."""
    # NumPy reads beyond the array where the offset is -2^63.
    offset = max(-array.shape[a], min(offset, array.shape[b]))
    found = array.diagonal(offset, a, b)
    found.flags.writeable = array.flags.writeable  # NumPy hands it out read-only
    return found


@names_arguments
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return matrices of zeros with the last axis of ``input`` as their diagonals."""
    check_tensor("diag_embed", input)
    shape = input._array.shape
    a, b = wrap_dim(dim1, len(shape) + 1), wrap_dim(dim2, len(shape) + 1)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    offset, sizes = as_int(offset), list(shape[:-1])
    for axis in sorted((a, b)):
        sizes.insert(axis, shape[-1] + abs(offset))
    array = empty_beside(input._array, tuple(sizes), input._array.dtype)
    array.fill(0)
    diagonal(wrap(array), offset, a, b)._array[...] = input._array
    out = wrap(array)
    record("DiagEmbedBackward0", (input,), out, lambda needs, g: diagonal(g, offset, a, b))
    return out


@names_arguments
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return the diagonal of a matrix, copied, or the matrix with a vector as its diagonal.

    Raises
    ------
    RuntimeError
        The tensor is neither.
    """
    check_tensor("diag", input)
    diagonal = as_int(diagonal)
    rank = input._array.ndim
    if rank == 1:
        return diag_embed(input, diagonal)
    if rank == 2:
        return clone(_diagonal(input, diagonal))
    raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {rank}D")


_diagonal = diagonal


@names_arguments
def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return matrices with zeros above a diagonal; 0 is the main one, 1 the one right of it."""
    check_tensor("tril", input)
    return _triangle(input, np.tril, diagonal, "TrilBackward0")


@names_arguments
def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return matrices with zeros below a diagonal; 0 is the main one, 1 the one right of it."""
    check_tensor("triu", input)
    return _triangle(input, np.triu, diagonal, "TriuBackward0")


def _triangle(x: Tensor, function: Any, offset: int, name: str) -> Tensor:
    if x._array.ndim < 2:
        raise RuntimeError(f"{name[:4].lower()}: input tensor must have at least 2 dimensions")
    if offset.__class__ is not int:
        offset = as_int(offset)
    out = wrap(function(x._array, offset))
    record(name, (x,), out, lambda needs, grad: _triangle(grad, function, offset, name))
    return out


METHODS = {"unfold": windows, **in_place_methods(tril, triu)}
