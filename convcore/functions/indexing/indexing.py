"""Subscripts: ``x[...]`` and ``x[...] = y``.

Ints, slices, None and the ellipsis give views, one node each, as in PyTorch.  Masks and tensors of
indices are collected on the way and then copy what they point at, all in one step; the result's
axes stand where NumPy puts them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from operator import index as as_int
from typing import Any

import numpy as np

from convcore._errors import hinted, hints
from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, creation, legacy_name, scalar_name, wrap
from convcore._tensor.creation.arguments import element
from convcore._tensor.meta import MetaArray
from convcore.autograd import views
from convcore.autograd.node import record
from convcore.engine.runtime import layout
from convcore.functions._support.arguments import check_tensor
from convcore.functions._support.places import Indices, Places, add_at
from convcore.functions.elementwise.piecewise import masked
from convcore.functions.shapes.broadcast import expand, fit
from convcore.functions.shapes.convert import copied, copy_, preserve_format, store
from convcore.functions.shapes.shape import reshape, unsqueeze
from convcore.functions.shapes.slicing import along, picked, slice_of

__all__ = ["argwhere", "index_put", "nonzero"]

# Reading


def getitem(self: Tensor, key: Any) -> Tensor:
    """Return the part of the tensor that a subscript names.

    Raises
    ------
    IndexError
        An index is out of bounds or of a wrong type, there are too many, or they do not broadcast.
    ValueError
        A slice's step is not positive.
    """
    if key.__class__ is int:
        return _at(self, 0, key)
    if key.__class__ is slice:
        if not self._array.ndim:
            raise IndexError("slice() cannot be applied to a 0-dim tensor.")
        return slice_of(self, 0, *_bounds(key, self._array.shape[0]))
    if key is None:
        return unsqueeze(self, 0)
    found, indices = _basic(self, key)
    if indices:
        return take_at(found, indices, "IndexBackward0")
    return views.alias(self) if found is self else found


def _at(x: Tensor, axis: int, place: int, position: int = 0) -> Tensor:
    """Return the view of one place of an axis; ``position`` is that of the int in the subscript."""
    shape = x._array.shape
    if not shape:
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` "
            "in C++ to convert a 0-dim tensor to a number"
        )
    size = shape[axis]
    if not -size <= place < size:
        raise IndexError(
            f"index {place} is out of bounds for dimension {position} with size {size}"
        )
    return picked(x, along(axis, place), "SelectBackward0")


def _bounds(part: slice, size: int) -> tuple[int, int, int]:
    """Return where a slice starts, before what it stops, and its step."""
    if part.step is not None and as_int(part.step) < 0:
        raise hinted(ValueError("step must be greater than zero"), hints.BACKWARDS)
    start, stop, step = part.indices(size)
    return start, max(start, stop), step


def _is_whole(part: slice, size: int) -> bool:
    """Return whether PyTorch sees at once that a slice leaves an axis as it is."""
    return (
        part.start in (None, 0)
        and (part.stop is None or part.stop >= size)
        and part.step in (None, 1)
    )


def _basic(x: Tensor, key: Any) -> tuple[Tensor, Indices]:
    """Return the view that a subscript's ints, slices, Nones and ellipses make, and the rest of it.

    The rest is for the view's axes: None where the axis stays as it is.
    """
    items = [_item(item) for item in _as_tuple(key)]
    missing = x._array.ndim - sum(_n_axes(item) for item in items)
    if missing < 0:
        raise IndexError(f"too many indices for tensor of dimension {x._array.ndim}")
    indices: list[Tensor | None] = []
    axis = passed = 0  # the next axis of the view, and how many of its axes `indices` is for
    for position, item in enumerate(items):
        if item is None:
            x = unsqueeze(x, axis)
            axis += 1
        elif item is ...:
            axis += missing
            missing = 0
        elif isinstance(item, slice):
            size = x._array.shape[axis]
            if not _is_whole(item, size):
                x = slice_of(x, axis, *_bounds(item, size))
            axis += 1
        elif isinstance(item, int):
            x = _at(x, axis, item, position)
        else:
            if not item._array.ndim:  # True or False: an axis of size 1 is kept or emptied
                x = unsqueeze(x, axis)
                item = wrap(item._array.reshape(1))
            indices += [None] * (axis - passed) + [item]
            is_mask = item._array.dtype.kind == "b"
            if is_mask and not item._array.size:  # NumPy takes an empty mask for any
                check_indices(x._array.shape, (None,) * axis + (item,))
            axis += item._array.ndim if is_mask else 1
            passed = axis
    return x, tuple(indices)


def _as_tuple(key: Any) -> tuple:
    """Return a subscript as a tuple of items; a list that holds more than numbers is one too."""
    if isinstance(key, tuple):
        return key
    if isinstance(key, list) and any(
        item is None or item is ... or isinstance(item, slice | list | tuple | Tensor)
        for item in key
    ):
        return tuple(key)
    return (key,)


def _item(item: Any) -> Any:
    """Return one item of a subscript as an int, slice, None, ellipsis, or Tensor of ints or bools.

    A 0-d tensor of bool stands for True or False.
    """
    if item.__class__ is int or item.__class__ is slice or item is None or item is ...:
        return item
    if isinstance(item, bool | np.bool_):
        return wrap(np.asarray(item, bool))
    if isinstance(item, np.integer):
        return int(item)
    if isinstance(item, np.ndarray):
        item = wrap(item)
    elif not isinstance(item, Tensor):
        if isinstance(item, str | bytes):
            raise TypeError(f"new(): invalid data type '{type(item).__name__}'")
        if not isinstance(item, Sequence):
            raise hinted(
                IndexError(
                    "only integers, slices (`:`), ellipsis (`...`), None and long or byte "
                    f"Variables are valid indices (got {type(item).__name__})"
                ),
                hints.of_pytorch(item),
            )
        item = creation.tensor(item)
        if not item._array.size:
            item = wrap(item._array.astype(np.int64))
    array = item._array
    if array.dtype == np.uint8:  # PyTorch's masks were of bytes once
        warnings.warn(
            "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool "
            "instead.",
            stacklevel=2,
        )
        return wrap(array.astype(bool))
    if array.dtype.kind == "b":
        return item
    if array.dtype.kind == "i" and (array.ndim == 0 or array.itemsize >= 4):
        return item if array.ndim else int(array)
    raise IndexError("tensors used as indices must be long, int, byte or bool tensors")


def _n_axes(item: Any) -> int:
    """Return how many axes an item of a subscript takes up."""
    if item is None or item is ...:
        return 0
    if isinstance(item, Tensor) and item._array.dtype.kind == "b":
        return item._array.ndim
    return 1


def take_at(x: Tensor, indices: Indices, name: str) -> Tensor:
    """Return a copy of what ``indices`` point at."""
    out = wrap(_taken(x._array, indices))
    shape = x._array.shape
    record(name, (x,), out, lambda needs, grad, *saved: _put_back(grad, shape, saved), indices)
    return out


def _taken(array: np.ndarray, indices: Indices) -> np.ndarray:
    key = as_key(indices)
    for part in key:
        if isinstance(part, MetaArray) and part.dtype.kind == "b":
            part.refuse()  # how many elements it chooses is not known
    try:
        if len(key) == 1 and layout.is_channels_last(array.shape, array.strides):
            return _taken_pixels_first(array, key[0])
        if key[-1].dtype.kind != "b" and array.flags.c_contiguous and _is_last(key):
            return array.take(key[-1], len(key) - 1)  # faster than a subscript
        return array[key]
    except IndexError:
        check_indices(array.shape, indices)
        raise


def _is_last(key: tuple) -> bool:
    return all(isinstance(part, slice) for part in key[:-1])


def _taken_pixels_first(array: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Return ``array[index]`` of a channels_last array, channels_last where it is one of images."""
    rank = array.ndim - 2
    if index.ndim != 1:
        return array[index]
    pixels = array.transpose(0, *range(2, rank + 2), 1)
    return pixels[index].transpose(layout.memory_order(rank))


def as_key(indices: Indices) -> tuple:
    """Return indices as NumPy's subscript."""
    return tuple([slice(None) if index is None else index._array for index in indices])


def check_indices(shape: tuple[int, ...], indices: Indices) -> None:
    """Raise PyTorch's error for indices that NumPy refuses."""
    axis = 0
    arrays: list[Any] = []
    for index in indices:
        array = None if index is None else index._array
        if array is None:
            axis += 1
        elif array.dtype.kind == "b":
            for offset in range(array.ndim):
                if array.shape[offset] != shape[axis + offset]:
                    raise IndexError(
                        f"The shape of the mask {list(array.shape)} at index {offset} does not "
                        f"match the shape of the indexed tensor {list(shape)} at index "
                        f"{axis + offset}"
                    )
            arrays += np.nonzero(array)[:1]
            axis += array.ndim
        else:
            check_range(array, shape[axis], axis)
            arrays.append(array)
            axis += 1
    try:
        np.broadcast_shapes(*(array.shape for array in arrays))
    except ValueError:
        shapes = ", ".join(str(list(array.shape)) for array in arrays)
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}"
        ) from None


def check_range(
    array: np.ndarray, size: int, axis: int, least: int | None = None, error: type = IndexError
) -> None:
    """Raise unless all indices into an axis are at least ``least`` and below its size."""
    least = -size if least is None else least
    outside = (array < least) | (array >= size)
    if outside.any():
        raise error(
            f"index {array[outside].flat[0]} is out of bounds for dimension {axis} with size {size}"
        )


# The gradient of reading


def _put_back(grad: Tensor, shape: tuple[int, ...], indices: Indices) -> Tensor:
    """Return zeros to which the gradient is added where it was taken from."""
    array = np.zeros(shape, grad._array.dtype)
    add_at(array, indices, grad._array)
    out = wrap(array)
    record(
        "IndexPutBackward0",
        (grad,),
        out,
        lambda needs, g, *saved: take_at(g, saved, "IndexBackward0"),
        indices,
    )
    return out


# Writing


def setitem(self: Tensor, key: Any, value: Any) -> None:
    """Replace the part of the tensor that a subscript names.

    ``value`` is a number or a Tensor, converted to this tensor's dtype; it broadcasts.

    Raises
    ------
    IndexError, ValueError
        As for reading.
    RuntimeError
        The value does not broadcast, or the tensor cannot be written to.
    TypeError
        The value is neither a number nor a Tensor.
    """
    value = _value(self, value)
    if key.__class__ is int:
        part, indices = _at(self, 0, key), ()
    else:
        part, indices = _basic(self, key)
    if indices:
        _index_put(part, indices, value, accumulate=False, in_place=True)
        return
    shape = part._array.shape
    found = value._array.shape
    if found and found != shape:
        extra = len(found) - len(shape)
        if extra > 0 and found[:extra] == (1,) * extra:
            value = reshape(value, found[extra:])
        value = expand(value, shape)
    copy_(part, value)


def _value(x: Tensor, value: Any) -> Tensor:
    """Return the assigned value as a tensor."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, int | float | complex | np.generic):
        return wrap(element(value, x._array.dtype))
    raise TypeError(f"can't assign a {type(value).__name__} to a {legacy_name(x._array.dtype)}")


def applied(
    x: Tensor,
    in_place: bool,
    change: Callable[[np.ndarray], Any],
    name: str,
    inputs: tuple,
    backward: Callable,
    saved: tuple = (),
) -> Tensor:
    """Change x's memory, or a copy of it, and record that; the rest is as for `views.write`."""
    if in_place:
        return views.write(x, change, name, inputs, backward, saved)
    array = copied(x._array, x._array.dtype, preserve_format)
    change(array)
    out = wrap(array)
    record(name, inputs, out, backward, saved)
    return out


@names_arguments
def index_put(
    input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
) -> Tensor:
    """Return a copy with other values at some places.

    Parameters
    ----------
    input : Tensor
    indices : tensors of ints or masks, for the axes from the first on; they broadcast
    values : Tensor of input's dtype, which broadcasts to what the indices name
    accumulate : add the values instead.  Of several values for one place the last one stays, and
        gets the gradient.

    Raises
    ------
    IndexError
        An index is out of bounds.
    RuntimeError
        The values do not broadcast or are of another dtype, which only one element may be that
        replaces what one mask names.
    """
    return _index_put(input, _given(indices), values, accumulate, in_place=False)


@names_arguments
def index_put_(
    self: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
) -> Tensor:
    """Replace values at some places in place; see `index_put`."""
    return _index_put(self, _given(indices), values, accumulate, in_place=True)


def _given(indices: Sequence[Tensor | None]) -> Indices:
    found = []
    if not len(indices):
        raise RuntimeError("index_put: indices must have at least one index, got none")
    for index in indices:
        index = _item(index)
        if isinstance(index, int):
            index = wrap(np.asarray(index))
        found.append(index)
    while found and found[-1] is None:
        found.pop()
    return tuple(found)


def _index_put(
    x: Tensor, indices: Indices, values: Tensor, accumulate: bool, in_place: bool
) -> Tensor:
    new = values._array
    if new.dtype != x._array.dtype and not (new.size == 1 and not accumulate and _is_mask(indices)):
        names = [scalar_name(array.dtype) for array in (x._array, new)]
        raise RuntimeError(
            f"Index put requires the source and destination dtypes match, got {names[0]} for the "
            f"destination and {names[1]} for the source."
        )

    def change(array: np.ndarray) -> None:
        _put(array, indices, new, accumulate)

    def backward(needs: tuple[bool, ...], grad: Tensor, *saved: Any) -> tuple:
        rest = inside = None
        if needs[0]:
            zero = wrap(np.zeros((), grad._array.dtype))
            rest = grad if accumulate else _index_put(grad, saved, zero, False, in_place=False)
        if needs[1]:
            inside = take_at(grad, saved, "IndexBackward0")
            if not accumulate:
                inside = _without_lost(inside, saved, grad._array.shape)
            lead = max(0, new.ndim - inside._array.ndim)  # axes of 1 that an assignment drops
            inside = fit(inside, (new.shape[lead:], new.dtype))
            inside = reshape(inside, new.shape) if lead else inside
        return rest, inside

    return applied(x, in_place, change, "IndexPutBackward0", (x, values), backward, indices)


def _is_mask(indices: Indices) -> bool:
    """Return whether one mask says what is named, which one element of any dtype may fill."""
    given = [index._array for index in indices if index is not None]
    return len(given) == 1 and given[0].dtype.kind == "b"


def _put(array: np.ndarray, indices: Indices, values: np.ndarray, accumulate: bool) -> None:
    key = as_key(indices)
    try:
        if accumulate:
            array[key]  # for its errors: the sums are not made by a subscript
            add_at(array, indices, values.astype(array.dtype, copy=False))
        elif values.dtype == array.dtype:
            _write(array, key, values)
        else:
            changed = np.empty(values.shape, array.dtype)
            store(changed, values)
            _write(array, key, changed)
    except IndexError:
        check_indices(array.shape, indices)
        raise
    except ValueError:
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to "
            f"indexing result of shape {list(Places(indices, array.shape).result)}"
        ) from None


def _write(array: np.ndarray, key: tuple, values: np.ndarray) -> None:
    try:
        array[key] = values
    except TypeError:  # into what one mask chooses NumPy writes vectors only
        array[(*key, ...)] = values


def _without_lost(grad: Tensor, indices: Indices, shape: tuple[int, ...]) -> Tensor:
    """Return a gradient of values with zeros for those that were written over at once."""
    if all(index is None or index._array.dtype.kind == "b" for index in indices):
        return grad
    lost = Places(indices, shape).overwritten()
    return grad if lost is None else masked(grad, ~lost)


# Nonzero elements


def nonzero(input: Tensor, *, out: None = None, as_tuple: bool = False) -> Any:
    """Return the indices of the nonzero elements.

    Parameters
    ----------
    input : Tensor
    as_tuple : return one vector of indices for each axis, as a subscript takes them, instead of
        one row of indices for each element.

    Examples
    --------
    >>> import convcore
    >>> convcore.nonzero(convcore.tensor([0, 5, 0, 7]))
    tensor([[1],
            [3]])
    """
    check_tensor("nonzero", input)
    array = input._array
    if as_tuple:
        return tuple([wrap(place) for place in np.nonzero(np.atleast_1d(array))])
    return wrap(np.argwhere(array))


def argwhere(input: Tensor) -> Tensor:
    """Return the indices of the nonzero elements, one row each."""
    check_tensor("argwhere", input)
    return nonzero(input)


METHODS = {"index_put_": index_put_, "__getitem__": getitem, "__setitem__": setitem}
