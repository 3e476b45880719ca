"""Splitting along an axis: split, chunk, tensor_split and unbind; gradients are joined again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, scalar_name, wrap
from convcore._tensor.creation.arguments import checked_int
from convcore.autograd import views
from convcore.autograd.node import describe
from convcore.engine.integers import is_int
from convcore.functions._support.arguments import check_arguments, check_tensor, ints
from convcore.functions.shapes.joining import cat, stack
from convcore.functions.shapes.shape import wrap_dim
from convcore.functions.shapes.slicing import along, slice_of

__all__ = ["chunk", "split", "tensor_split", "unbind"]


def split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Split a tensor along an axis into views.

    Parameters
    ----------
    tensor : Tensor
    split_size_or_sections : the size of each piece, the last of which may be smaller; or a list of
        sizes.
    dim : int

    Raises
    ------
    RuntimeError
        The sizes do not sum up to the axis, or one is negative.
    """
    check_arguments("split", tensor=tensor)
    if isinstance(split_size_or_sections, tuple | list):
        sizes = ints("split", "split_size_or_sections", split_size_or_sections)
        return _split_with_sizes(tensor, sizes, dim)
    size = checked_int("split", "split_size_or_sections", split_size_or_sections)
    shape = tensor._array.shape
    if not shape:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={size}")
    axis = wrap_dim(dim, len(shape))
    length = shape[axis]
    if size == 0 and length:
        raise RuntimeError(
            f"split_size can only be 0 if dimension size is 0, but got dimension size of {length}"
        )
    starts = range(0, length, size) if length else (0,)
    bounds = [(start, min(start + size, length)) for start in starts]
    return _cut(tensor, axis, bounds, "SplitBackward0")


def _split_with_sizes(x: Tensor, sizes: tuple[int, ...], dim: int) -> tuple[Tensor, ...]:
    shape = x._array.shape
    if not shape:
        raise RuntimeError("split_with_sizes expects at least a 1-dimensional tensor")
    axis = wrap_dim(dim, len(shape))
    if sizes and min(sizes) < 0:
        raise RuntimeError(
            "split_with_sizes expects split_sizes have only non-negative entries, but got "
            f"split_sizes={list(sizes)}"
        )
    if sum(sizes) != shape[axis]:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {shape[axis]} (input "
            f"tensor's size at dimension {axis}), but got split_sizes={list(sizes)}"
        )
    ends = np.cumsum(sizes).tolist()
    bounds = [(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    return _cut(x, axis, bounds, "SplitWithSizesBackward0")


def _cut(x: Tensor, axis: int, bounds: list, name: str) -> tuple[Tensor, ...]:
    """Return views of some parts of an axis, all made by one node."""
    steps = [along(axis, slice(*bound)) for bound in bounds]
    return _apart(x, steps, lambda pieces: cat(pieces, axis), name)


def _apart(x: Tensor, steps: list, join: Any, name: str) -> tuple[Tensor, ...]:
    """Return the views that ``steps`` make of x; ``join`` makes x of the views."""
    dtype = x._array.dtype
    pieces: list[tuple[int, ...]] = []

    def backward(needs: tuple[bool, ...], grads: Any) -> Tensor:
        grads = grads if isinstance(grads, tuple) else (grads,)
        return join(
            [
                wrap(np.zeros(size, dtype)) if grad is None else grad
                for grad, size in zip(grads, pieces, strict=True)
            ]
        )

    outs = views.views(x, [step(x._array) for step in steps], name, backward)
    pieces += [out._array.shape for out in outs]
    if outs:
        describe(outs[0], parts=steps)
    return outs


@names_arguments
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Cut a tensor along an axis into at most ``chunks`` views of one size, but for the last.

    Raises
    ------
    RuntimeError
        ``chunks`` is not positive, or the tensor has no axes.
    """
    check_tensor("chunk", input)
    shape = input._array.shape
    if not shape:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    chunks = checked_int("chunk", "chunks", chunks)
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    length = shape[wrap_dim(dim, len(shape))]
    if not length:
        _check_number("chunks", chunks, length)
        return _split_with_sizes(input, (0,) * chunks, dim)
    return split(input, -(-length // chunks), dim)


@names_arguments
def tensor_split(
    input: Tensor,
    indices_or_sections: int | Sequence[int] | Tensor | None = None,
    dim: int = 0,
    *,
    indices: Sequence[int] | None = None,
    sections: int | None = None,
) -> tuple[Tensor, ...]:
    """Cut a tensor along an axis into views as NumPy's array_split does.

    Parameters
    ----------
    input : Tensor
    indices_or_sections : the number of pieces, whose sizes differ by one at most; or the places to
        cut at.
    dim : int
    indices, sections : the places, or the number, by a name of their own.

    Raises
    ------
    TypeError
        Neither a number of pieces nor places are given, or more than one of them.
    RuntimeError
        The number of pieces is not positive, or the tensor has no axes.
    """
    check_tensor("tensor_split", input)
    shape = input._array.shape
    if not shape:
        raise RuntimeError(
            "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims"
        )
    axis = wrap_dim(dim, len(shape))
    given = [v for v in (indices_or_sections, indices, sections) if v is not None]
    if len(given) != 1:
        raise TypeError(
            f"tensor_split() takes one of indices_or_sections, indices, sections, got {len(given)}"
        )
    if isinstance(given[0], Tensor):
        _check_places(given[0]._array)
    where: Any = given[0].tolist() if isinstance(given[0], Tensor) else given[0]
    if where is sections or is_int(where):
        where = checked_int("tensor_split", "sections", where)
        if where <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {where}")
        _check_number("sections", where, shape[axis])
        least, larger = divmod(shape[axis], where)
        where = [least * n + min(n, larger) for n in range(1, where)]
    else:
        where = ints("tensor_split", "indices_or_sections", where)
    bounds = zip([0, *where], [*where, None], strict=True)
    return tuple([_sliced(input, axis, slice(*bound)) for bound in bounds])


def _check_places(array: np.ndarray) -> None:
    name = "tensor_split expected tensor_indices_or_sections"
    if array.dtype != np.int64:
        raise RuntimeError(f"{name} to have dtype of long, but got {scalar_name(array.dtype)}")
    if array.ndim > 1:
        raise RuntimeError(
            f"{name} to be a zero-dimensional or one-dimensional tensor, but got a tensor with "
            f"{array.ndim} dims"
        )


# More pieces than elements are empty ones: so many are made, and more would run on for hours.
_MOST_EMPTY = 1 << 16


def _check_number(name: str, number: int, length: int) -> None:
    """Raise rather than make endless empty pieces."""
    if number > length + _MOST_EMPTY:
        raise RuntimeError(
            f"argument '{name}' must be at most {length + _MOST_EMPTY} for an axis of size "
            f"{length}, got {number}"
        )


def _sliced(x: Tensor, axis: int, part: slice) -> Tensor:
    start, stop, _ = part.indices(x._array.shape[axis])
    return slice_of(x, axis, start, max(start, stop))


@names_arguments
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Return views of all slices along an axis, which is removed.

    Raises
    ------
    IndexError
        There is no such axis.
    """
    check_tensor("unbind", input)
    shape = input._array.shape
    if not shape:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    axis = wrap_dim(dim, len(shape))
    if not shape[axis]:
        return ()
    steps = [along(axis, place) for place in range(shape[axis])]
    return _apart(input, steps, lambda pieces: stack(pieces, axis), "UnbindBackward0")


def _split(self: Tensor, split_size: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Return views of parts of the tensor of the given size, or sizes, along an axis."""
    return split(self, split_size, dim)


def _iterate(self: Tensor) -> Iterator[Tensor]:
    """Iterate over views of the slices along the first axis."""
    if not self._array.ndim:
        raise TypeError("iteration over a 0-d tensor")
    return iter(unbind(self, 0))


METHODS = {"split": _split, "__iter__": _iterate}
