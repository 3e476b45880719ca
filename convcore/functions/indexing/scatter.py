"""gather, scatter and their relatives: elements along one axis by a tensor of indices.

Each operation has a form in place and one out of place, made of one body: `applied` runs it on the
tensor's own memory or on a copy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, scalar_name, wrap
from convcore._tensor.creation.arguments import checked_number, number_as
from convcore.autograd.grad_mode import mode
from convcore.autograd.node import record
from convcore.functions._support.arguments import check_arguments, check_tensor
from convcore.functions._support.places import Indices, add_at
from convcore.functions.indexing.indexing import _without_lost, applied, check_range, take_at
from convcore.functions.shapes.broadcast import broadcast_shape, expand
from convcore.functions.shapes.shape import reshape, wrap_dim
from convcore.functions.shapes.slicing import placed

__all__ = ["gather", "scatter", "scatter_add", "take", "take_along_dim"]


# Arguments


def with_axes(x: Tensor) -> Tensor:
    return x if x._array.ndim else reshape(x, 1)


# Single elements along an axis


@names_arguments
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """Return out[.., i, ..] = input[.., index[.., i, ..], ..] along the axis ``dim``.

    Parameters
    ----------
    input : Tensor
    dim : int
    index : Tensor of int64 with as many axes; apart from ``dim`` none is longer than input's
    sparse_grad : ignored

    Returns
    -------
    Tensor of the shape of ``index``

    Raises
    ------
    RuntimeError
        An index is out of bounds, or the shapes do not fit together.

    Examples
    --------
    >>> import convcore
    >>> convcore.gather(convcore.tensor([[1, 2], [3, 4]]), 1, convcore.tensor([[1], [0]]))
    tensor([[2],
            [3]])
    """
    check_tensor("gather", input)
    axis = wrap_dim(dim, input._array.ndim)
    _check_int("gather", index)
    shape, places = input._array.shape, index._array
    if not places.size:
        return take_at(reshape(input, -1), (index,), "GatherBackward0")
    if max(len(shape), 1) != max(places.ndim, 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    for d, (size, length) in enumerate(zip(shape, places.shape, strict=False)):
        if d != axis and length > size:
            raise RuntimeError(
                f"Size does not match at dimension {d} expected index {list(places.shape)} to be "
                f"no larger than self {list(shape)} apart from dimension {axis}"
            )
    return _gathered(input, axis, index)


def _gathered(x: Tensor, axis: int, index: Tensor) -> Tensor:
    if not x._array.ndim or not index._array.ndim:
        line = _gathered(with_axes(x), 0, with_axes(index))
        return reshape(line, index._array.shape)
    check_range(index._array, x._array.shape[axis], axis, 0, RuntimeError)
    out = wrap(x._array[_grid_key(axis, index._array)])
    shape = x._array.shape
    record(
        "GatherBackward0",
        (x,),
        out,
        lambda needs, grad, index: _scatter_add(
            wrap(np.zeros(shape, grad._array.dtype)), axis, index, grad, in_place=False
        ),
        (index,),
    )
    return out


def _check_int(function: str, index: Tensor) -> None:
    if index._array.dtype not in (np.int64, np.int32):
        raise RuntimeError(f"{function}(): Expected dtype int32/int64 for index")


def _grid_key(axis: int, places: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return NumPy's subscript for one element an index: its own place but along ``axis``."""
    rank = places.ndim
    return tuple(
        [
            places if d == axis else np.arange(size).reshape(-1, *(1,) * (rank - 1 - d))
            for d, size in enumerate(places.shape)
        ]
    )


def _grid(axis: int, places: np.ndarray) -> Indices:
    return tuple([wrap(part) for part in _grid_key(axis, places)])


def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Return the elements at indices along an axis, such as those that `argsort` returns.

    Unlike with `gather` the other axes broadcast, and indices below 0 count from the end
    of the axis, if one is given.
    """
    check_arguments("take_along_dim", input=input, indices=indices)
    if indices._array.dtype != np.int64:
        raise RuntimeError(
            "torch.take_along_dim(): dtype of indices should be Long but got "
            f"{scalar_name(indices._array.dtype)}"
        )
    if dim is None:
        return gather(reshape(input, -1), 0, reshape(indices, -1))
    axis = wrap_dim(dim, input._array.ndim)
    if input._array.ndim != indices._array.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, "
            f"but got {input._array.ndim} dimensions for input, and {indices._array.ndim} "
            "dimensions for indices"
        )
    ours, theirs = list(input._array.shape), list(indices._array.shape)
    size, length = ours[axis], theirs[axis]
    ours[axis] = theirs[axis] = 1
    joint = list(broadcast_shape(tuple(ours), tuple(theirs)))
    ours, theirs = list(joint), list(joint)
    ours[axis], theirs[axis] = size, length
    return gather(expand(input, ours), axis, expand(_from_start(indices, size), theirs))


def _from_start(indices: Tensor, size: int) -> Tensor:
    """Return indices that all count from the start of an axis."""
    array = indices._array
    return wrap(np.where(array < 0, array + size, array))


def take(input: Tensor, index: Tensor) -> Tensor:
    """Return the elements at indices into the flattened tensor.

    Raises
    ------
    IndexError
        An index is out of bounds.
    RuntimeError
        ``index`` is not of int64.
    """
    check_arguments("take", input=input, index=index)
    array, places = input._array, index._array
    if places.dtype != np.int64:
        raise RuntimeError(
            f"take(): Expected a long tensor for index, but got {scalar_name(places.dtype)}"
        )
    outside = (places < -array.size) | (places >= array.size)
    if outside.any():
        raise IndexError(
            f"out of range: tried to access index {places[outside].flat[0]} on a tensor of "
            f"{array.size} elements."
        )
    return take_at(reshape(input, -1), (index,), "TakeBackward0")


def _scatter(
    x: Tensor,
    dim: int,
    index: Tensor,
    src: Any = None,
    *,
    value: Any = None,
    reduce: str | None = None,
    in_place: bool,
) -> Tensor:
    src = value if src is None else src
    if reduce is not None:
        return _scatter_reduced(x, dim, index, src, reduce, in_place)
    axis, places = _checked_scatter("scatter", x, dim, index, src)
    if not isinstance(src, Tensor):
        number = number_as(checked_number("scatter", src, "value"), x._array.dtype)
        return applied(
            x,
            in_place,
            lambda array: _store_at(array, axis, places, number),
            "ScatterBackward1",
            (x,),
            lambda needs, grad, index: _scatter(grad, axis, index, 0, in_place=False),
            (index,),
        )
    new = src._array

    def backward(needs: tuple[bool, ...], grad: Tensor, index: Tensor) -> tuple:
        rest = inside = None
        if needs[0]:
            rest = _scatter(grad, axis, index, 0, in_place=False)
        if needs[1]:
            inside = _gathered(grad, axis, index)
            if index._array.ndim:
                inside = _without_lost(inside, _grid(axis, index._array), grad._array.shape)
            inside = corner(inside, new.shape)
        return rest, inside

    def change(array: np.ndarray) -> None:
        _store_at(array, axis, places, new[tuple([slice(size) for size in places.shape])])

    return applied(x, in_place, change, "ScatterBackward0", (x, src), backward, (index,))


def _store_at(array: np.ndarray, axis: int, places: np.ndarray, values: Any) -> None:
    places, values = np.atleast_1d(places), np.atleast_1d(values)
    if places.size:
        np.atleast_1d(array)[_grid_key(axis, places)] = values


def corner(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return ``x`` filled up with zeros to a larger shape; its gradient is the first elements."""
    if x._array.shape == shape:
        return x
    corner = tuple([slice(size) for size in x._array.shape])
    return placed(x, shape, lambda array: array[corner], "SliceBackward0")


def _checked_scatter(
    function: str, x: Tensor, dim: int, index: Tensor, src: Any
) -> tuple[int, np.ndarray]:
    axis = wrap_dim(dim, x._array.ndim)
    _check_int(function, index)
    array, places = x._array, index._array
    shapes = [array.shape]
    if isinstance(src, Tensor):
        shapes.append(src._array.shape)
        if src._array.dtype != array.dtype:
            raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    if not places.size:
        return axis, places
    if any(max(len(shape), 1) != max(places.ndim, 1) for shape in shapes):
        raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
    fits = all(
        length <= size or (shape is shapes[0] and d == axis)
        for shape in shapes
        for d, (size, length) in enumerate(zip(shape, places.shape, strict=False))
    )
    if not fits:
        tail = (
            f" and to be no larger size than src {list(src._array.shape)}"
            if isinstance(src, Tensor)
            else ""
        )
        raise RuntimeError(
            f"Expected index {list(places.shape)} to be no larger than self {list(array.shape)} "
            f"apart from dimension {axis}{tail}"
        )
    check_range(places, array.shape[axis] if array.ndim else 1, axis, 0, RuntimeError)
    return axis, places


def _scatter_reduced(
    x: Tensor, dim: int, index: Tensor, src: Any, reduce: str, in_place: bool
) -> Tensor:
    """Scatter with the older ``reduce`` argument: add or multiply."""
    if reduce not in ("add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    if not isinstance(src, Tensor):
        number = number_as(checked_number("scatter", src, "value"), x._array.dtype)
        src = wrap(np.full(index._array.shape, number, x._array.dtype))
    if reduce == "add":
        return _scatter_add(x, dim, index, src, in_place=in_place)
    if mode.enabled and (x.requires_grad or src.requires_grad):
        raise RuntimeError("scatter(): reduce='multiply' has no gradient; detach its operands")
    axis, places = _checked_scatter("scatter", x, dim, index, src)
    values = src._array[tuple([slice(size) for size in places.shape])]

    def change(array: np.ndarray) -> None:
        key = _grid_key(axis, np.atleast_1d(places))
        np.multiply.at(np.atleast_1d(array), key, np.atleast_1d(values))

    return applied(x, in_place, change, "ScatterBackward2", (x,), _no_gradient)


def _no_gradient(needs: tuple[bool, ...], grad: Tensor) -> None:
    return None


def _scatter_add(x: Tensor, dim: int, index: Tensor, src: Tensor, *, in_place: bool) -> Tensor:
    axis, places = _checked_scatter("scatter_add", x, dim, index, src)
    new = src._array

    def change(array: np.ndarray) -> None:
        values = new[tuple([slice(size) for size in places.shape])]
        add_at(np.atleast_1d(array), _grid(axis, np.atleast_1d(places)), np.atleast_1d(values))

    def backward(needs: tuple[bool, ...], grad: Tensor, index: Tensor) -> tuple:
        inside = corner(_gathered(grad, axis, index), new.shape) if needs[1] else None
        return grad if needs[0] else None, inside

    return applied(x, in_place, change, "ScatterAddBackward0", (x, src), backward, (index,))


# Functions, and their in-place methods


@names_arguments
def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Any = None,
    *,
    value: Any = None,
    reduce: str | None = None,
) -> Tensor:
    """Return a copy with elements replaced at indices along an axis.

    The reverse of `gather`.

    Parameters
    ----------
    input : Tensor
    dim : int
    index : Tensor of int64 with as many axes; none is longer than src's, nor than input's apart
        from ``dim``
    src : Tensor of input's dtype, or a number, also as ``value``.  Of several for one place the
        last one stays, and gets the gradient.
    reduce : None, 'add', or 'multiply', which has no gradient

    Raises
    ------
    RuntimeError
        The shapes or dtypes do not fit together, or an index is out of bounds.
    """
    check_tensor("scatter", input)
    return _scatter(input, dim, index, src, value=value, reduce=reduce, in_place=False)


@names_arguments
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Return a copy with elements added at indices along an axis.

    Places may be named several times; what goes to one is summed in order.
    """
    check_tensor("scatter_add", input)
    return _scatter_add(input, dim, index, src, in_place=False)


def in_place_form(body: Callable, function: Callable) -> Callable:
    """Return the method that does in place what a function does, by their common body."""
    method = partial(body, in_place=True)

    def bound(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return method(self, *args, **kwargs)

    bound.__name__ = bound.__qualname__ = f"{function.__name__}_"
    bound.__wrapped__ = function  # type: ignore[attr-defined]  # help() shows its arguments
    bound.__doc__ = f"Do what `{function.__name__}` does, in place."
    return names_arguments(bound)


METHODS = {
    "scatter_": in_place_form(_scatter, scatter),
    "scatter_add_": in_place_form(_scatter_add, scatter_add),
}
