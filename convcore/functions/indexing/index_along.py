"""Slices along an axis by a vector of indices: index_select, index_add, repeat_interleave."""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore._errors import hinted, hints
from convcore._errors.calls import names_arguments, typename
from convcore._tensor import Tensor, contiguous_format, scalar_name, wrap
from convcore._tensor.creation.arguments import checked_int, checked_number, element, factor
from convcore._tensor.meta import meta
from convcore.autograd.node import describe, record
from convcore.functions._support.arguments import check_tensor
from convcore.functions._support.places import Indices, add_at
from convcore.functions.elementwise.arithmetic import mul
from convcore.functions.indexing.indexing import _put_back, applied, check_range
from convcore.functions.indexing.scatter import in_place_form
from convcore.functions.shapes.broadcast import expand
from convcore.functions.shapes.convert import clone, store
from convcore.functions.shapes.shape import reshape, unsqueeze, view, wrap_dim

__all__ = ["index_add", "index_select", "repeat_interleave"]


def _vector(function: str, index: Tensor) -> Tensor:
    """Return a vector of indices; a number counts as one."""
    if not isinstance(index, Tensor):
        raise TypeError(
            f"{function}(): argument 'index' (position 3) must be Tensor, not {typename(index)}"
        )
    if index._array.dtype not in (np.int64, np.int32):
        raise RuntimeError(f"{function}(): Expected dtype int32 or int64 for index")
    if index._array.ndim > 1:
        raise IndexError(f"{function}(): Index is supposed to be a vector")
    return index if index._array.ndim else reshape(index, 1)


def _at_axis(axis: int, index: Tensor) -> Indices:
    """Return indices that are for one axis alone."""
    return (*(None,) * axis, index)


@names_arguments
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Return a copy of the slices of an axis at a vector of indices.

    Parameters
    ----------
    input : Tensor
    dim : int
    index : Tensor of int64 or int32 with at most one axis; none is negative

    Raises
    ------
    IndexError
        An index is out of bounds, or ``index`` has several axes.
    """
    index = _vector("index_select", index)
    if not input._array.ndim:
        return reshape(index_select(reshape(input, 1), dim, index), ())
    axis = wrap_dim(dim, input._array.ndim)
    array, places = input._array, index._array
    if places.size and (places.min() < 0 or places.max() >= array.shape[axis]):
        outside = int(places[(places < 0) | (places >= array.shape[axis])][0])
        raise hinted(
            IndexError("index out of range in self"),
            hints.INDEX_RANGE.format(outside, array.shape[axis] - 1),
        )
    out = wrap(array.take(places, axis))
    shape = array.shape
    record(
        "IndexSelectBackward0",
        (input,),
        out,
        lambda needs, grad, index: _put_back(grad, shape, _at_axis(axis, index)),
        (index,),
    )
    describe(out, dim=axis, index=index)
    return out


def _check_repeats(times: np.ndarray) -> None:
    if times.dtype not in (np.int32, np.int64):
        kind = scalar_name(times.dtype)
        raise NotImplementedError(f"\"repeat_interleave_cpu\" not implemented for '{kind}'")
    if times.ndim > 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if times.size and times.min() < 0:
        raise RuntimeError("repeats can not be negative")


@names_arguments
def repeat_interleave(
    input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Return each slice of an axis, repeated in its place.

    Parameters
    ----------
    input : Tensor; alone, it holds repeats, and indices repeated so often are returned
    repeats : int or Tensor of ints, one for each place
    dim : int, or None for the elements along one axis
    output_size : elements along the axis afterwards; asked for only where repeats are on meta

    Raises
    ------
    RuntimeError
        There are not as many repeats as places, one is negative, or ``output_size`` is another.
    """
    check_tensor("repeat_interleave", input)
    if output_size is not None:
        output_size = checked_int("repeat_interleave", "output_size", output_size)
    repeated = _repeated(input, repeats, dim, output_size)
    axis = 0 if repeats is None or dim is None else dim
    if output_size is not None and repeated._array.shape[axis] != output_size:
        raise RuntimeError(
            "repeat_interleave: Invalid output_size, expected "
            f"{repeated._array.shape[axis]} but got {output_size}"
        )
    return repeated


def _repeated(input: Tensor, repeats: Any, dim: int | None, output_size: int | None) -> Tensor:
    counts = input if repeats is None else repeats
    if isinstance(counts, Tensor) and counts.is_meta:
        return _repeated_unknown(input, counts, dim, output_size)
    times = np.asarray(input._array if repeats is None else getattr(repeats, "_array", repeats))
    if isinstance(repeats, Tensor) or repeats is None:
        _check_repeats(times)
    if times.dtype.kind in "iu" and times.sum(dtype=np.float64) >= 2**59:
        raise RuntimeError("repeat_interleave(): the repeats make more elements than fit")
    if repeats is None:
        return wrap(np.repeat(np.arange(times.size), times))
    if dim is None:
        input, dim = reshape(input, -1), 0
    shape = input._array.shape
    axis = wrap_dim(dim, len(shape))
    if times.dtype.kind not in "iu":
        raise TypeError(
            "repeat_interleave(): argument 'repeats' must be int or Tensor of ints, not "
            f"{type(repeats).__name__}"
        )
    if times.size and times.min() < 0:
        raise RuntimeError("Repeats must be non-negative")
    if times.size == 1 and not isinstance(repeats, Tensor):
        count = int(times.reshape(()))
        apart = (*shape[: axis + 1], count, *shape[axis + 1 :])
        joint = (*shape[:axis], shape[axis] * count, *shape[axis + 1 :])
        copies = clone(expand(unsqueeze(input, axis + 1), apart), memory_format=contiguous_format)
        return view(copies, joint)
    if times.size not in (1, shape[axis]):
        raise RuntimeError(
            "repeats must have the same size as input along dim, but got repeats.size(0) = "
            f"{times.size} and input.size({axis}) = {shape[axis]}"
        )
    return index_select(input, axis, wrap(np.repeat(np.arange(shape[axis]), times)))


def _repeated_unknown(
    input: Tensor, counts: Tensor, dim: int | None, output_size: int | None
) -> Tensor:
    """Do what `repeat_interleave` does, of repeats that have no values."""
    if output_size is None:
        raise RuntimeError("cannot repeat_interleave a meta tensor without output_size")
    if counts is input:
        return wrap(meta((output_size,), input._array.dtype))
    if dim is None:
        input, dim = reshape(input, -1), 0
    return index_select(input, dim, wrap(np.zeros(output_size, np.int64)))


def _index_add(
    x: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1, in_place: bool
) -> Tensor:
    index = _vector("index_add", index)
    axis = wrap_dim(dim, x._array.ndim)
    new = source._array
    if new.dtype != x._array.dtype:
        raise RuntimeError(
            f"index_add_(): self ({scalar_name(x._array.dtype)}) and source "
            f"({scalar_name(new.dtype)}) must have the same scalar type"
        )
    alpha = factor("index_add", "alpha", alpha, new.dtype)
    if x._array.ndim or new.ndim:
        _check_slices(x._array, axis, index._array, new)
    size = x._array.shape[axis] if x._array.ndim else 1
    check_range(index._array, size, axis, 0, RuntimeError)
    indices = _at_axis(axis, index)

    def change(array: np.ndarray) -> None:
        values = new if alpha == 1 else new * np.asarray(alpha).astype(new.dtype)
        add_at(np.atleast_1d(array), indices, np.atleast_1d(values))

    def backward(needs: tuple[bool, ...], grad: Tensor, index: Tensor) -> tuple:
        inside = None
        if needs[1]:
            inside = reshape(index_select(grad, axis, index), new.shape)
            inside = inside if alpha == 1 else mul(inside, alpha)
        return grad if needs[0] else None, inside

    return applied(x, in_place, change, "IndexAddBackward0", (x, source), backward, (index,))


def _check_slices(array: np.ndarray, axis: int, places: np.ndarray, new: np.ndarray) -> None:
    if axis >= new.ndim > 0:
        raise RuntimeError(
            f"index_add_(): Indexing dim {axis} is out of bounds of the source tensor with dim "
            f"{new.ndim}"
        )
    found = new.shape[axis] if new.ndim else 1
    if places.size != found:
        raise RuntimeError(
            f"index_add_(): Number of indices ({places.size}) should be equal to source.size(dim): "
            f"({found}), for dim: {axis}"
        )
    expected = array.shape[:axis] + array.shape[axis + 1 :]
    if new.shape[:axis] + new.shape[axis + 1 :] != expected or new.ndim != array.ndim:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. "
            f"Got self.shape = {list(array.shape)} source.shape = {list(new.shape)}"
        )


def number_for(x: Tensor, value: Any, function: str) -> Any:
    """Return a number, or a tensor without axes, as one element of ``x``."""
    if not isinstance(value, Tensor):
        return element(checked_number(function, value, "value"), x._array.dtype)
    if value._array.ndim:
        raise RuntimeError(
            f"{function} only supports a 0-dimensional value tensor, but got tensor with "
            f"{value._array.ndim} dimension(s)."
        )
    number = np.empty((), x._array.dtype)
    store(number, value._array)
    return number


@names_arguments
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """Return a copy with alpha * source[i] added at place index[i] of an axis, for every i.

    Places may be named several times; what goes to one is summed in order.

    Parameters
    ----------
    input : Tensor
    dim : int
    index : vector of int64 or int32
    source : Tensor of input's dtype, and shape apart from ``dim``
    alpha : number

    Raises
    ------
    RuntimeError
        The shapes or dtypes do not fit together, or an index is out of bounds.
    """
    return _index_add(input, dim, index, source, alpha=alpha, in_place=False)


METHODS = {"index_add_": in_place_form(_index_add, index_add)}
