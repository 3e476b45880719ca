"""Reading and writing along one axis by a tensor of indices, and by masks.

Each operation has a form in place and one out of place, made of one body: `applied` runs it on the
tensor's own memory or on a copy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from convcore._creation.arguments import number_as
from convcore._tensor import Tensor, contiguous_format, scalar_name, wrap
from convcore.autograd.node import record
from convcore.functions._support.arguments import check_arguments, check_tensor, typename
from convcore.functions.arithmetic import mul
from convcore.functions.broadcast import broadcast_shape, expand, fit
from convcore.functions.convert import clone, element, store
from convcore.functions.indexing import (
    Indices,
    _put_back,
    _without_lost,
    add_at,
    applied,
    as_key,
    check_range,
    take_at,
)
from convcore.functions.shape import placed, reshape, unsqueeze, view, wrap_dim

__all__ = [
    "gather",
    "index_add",
    "index_copy",
    "index_fill",
    "index_select",
    "masked_fill",
    "masked_scatter",
    "masked_select",
    "repeat_interleave",
    "scatter",
    "scatter_add",
    "take",
    "take_along_dim",
]


# Arguments


def _name(array: np.ndarray) -> str:
    """Return PyTorch's word for the elements of an array in its messages: Float."""
    return scalar_name(array.dtype)


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


def _with_axes(x: Tensor) -> Tensor:
    return x if x._array.ndim else reshape(x, 1)


# Whole slices


def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Return a copy of the places of an axis that a vector of indices names.

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
        raise IndexError("index out of range in self")
    out = wrap(array.take(places, axis))
    shape = array.shape
    record(
        "IndexSelectBackward0",
        (input,),
        out,
        lambda needs, grad, index: _put_back(grad, shape, _at_axis(axis, index)),
        (index,),
    )
    return out


def repeat_interleave(
    input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Return each place of an axis repeated where it stands.

    Parameters
    ----------
    input : Tensor; alone, it holds repeats, and indices repeated so often are returned
    repeats : int or Tensor of ints, one for each place
    dim : int, or None for the elements along one axis
    output_size : ignored

    Raises
    ------
    RuntimeError
        There are not as many repeats as places, or one is negative.
    """
    check_tensor("repeat_interleave", input)
    if repeats is None:
        return wrap(np.repeat(np.arange(input._array.size), input._array))
    if dim is None:
        input, dim = reshape(input, -1), 0
    shape = input._array.shape
    axis = wrap_dim(dim, len(shape))
    times = repeats._array if isinstance(repeats, Tensor) else np.asarray(repeats)
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


def _index_add(
    x: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1, in_place: bool
) -> Tensor:
    index = _vector("index_add", index)
    axis = wrap_dim(dim, x._array.ndim)
    new, places = source._array, index._array
    if new.dtype != x._array.dtype:
        raise RuntimeError(
            f"index_add_(): self ({_name(x._array)}) and source ({_name(new)}) must have the same "
            "scalar type"
        )
    if x._array.ndim:
        _check_slices(x._array, axis, places, new, "index_add_(): Number of indices")
    check_range(places, x._array.shape[axis] if x._array.ndim else 1, axis, 0, RuntimeError)
    indices = _at_axis(axis, index)

    def change(array: np.ndarray) -> None:
        values = new if alpha == 1 else np.multiply(new, alpha, dtype=new.dtype, casting="unsafe")
        add_at(np.atleast_1d(array), indices, np.atleast_1d(values))

    def backward(needs: tuple[bool, ...], grad: Tensor, index: Tensor) -> tuple:
        inside = None
        if needs[1]:
            inside = reshape(index_select(grad, axis, index), new.shape)
            inside = inside if alpha == 1 else mul(inside, alpha)
        return grad if needs[0] else None, inside

    return applied(x, in_place, change, "IndexAddBackward0", (x, source), backward, (index,))


def _check_slices(
    array: np.ndarray, axis: int, places: np.ndarray, new: np.ndarray, what: str
) -> None:
    """Raise unless there is a slice of the right shape for each place."""
    found = new.shape[axis] if new.ndim else 1
    if places.size != found:
        raise RuntimeError(
            f"{what} ({places.size}) should be equal to source.size(dim): ({found}), for dim: "
            f"{axis}"
        )
    expected = array.shape[:axis] + array.shape[axis + 1 :]
    if new.shape[:axis] + new.shape[axis + 1 :] != expected:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. "
            f"Got self.shape = {list(array.shape)} source.shape = {list(new.shape)}"
        )


def _index_copy(x: Tensor, dim: int, index: Tensor, source: Tensor, *, in_place: bool) -> Tensor:
    index = _vector("index_copy_", index)
    axis = wrap_dim(dim, x._array.ndim)
    new, places = source._array, index._array
    if new.dtype != x._array.dtype:
        raise RuntimeError(
            "index_copy_(): self and source expected to have the same dtype, but got (self) "
            f"{_name(x._array)} and (source) {_name(new)}"
        )
    if x._array.ndim:
        _check_slices(x._array, axis, places, new, "index_copy_(): Number of indices")
    check_range(places, x._array.shape[axis] if x._array.ndim else 1, axis, 0)
    indices = _at_axis(axis, index)

    def change(array: np.ndarray) -> None:
        np.atleast_1d(array)[as_key(indices)] = np.atleast_1d(new)

    def backward(needs: tuple[bool, ...], grad: Tensor, index: Tensor) -> tuple:
        rest = inside = None
        if needs[0]:
            rest = _index_fill(grad, axis, index, 0, in_place=False)
        if needs[1]:
            inside = index_select(_with_axes(grad), axis, index)
            inside = _without_lost(inside, _at_axis(axis, index), _with_axes(grad)._array.shape)
            inside = reshape(inside, new.shape)
        return rest, inside

    return applied(x, in_place, change, "IndexCopyBackward0", (x, source), backward, (index,))


def _index_fill(x: Tensor, dim: int, index: Tensor, value: Any, *, in_place: bool) -> Tensor:
    index = _vector("index_fill_", index)
    axis = wrap_dim(dim, x._array.ndim)
    number = _number(x, value, "index_fill_")
    check_range(index._array, x._array.shape[axis] if x._array.ndim else 1, axis)
    like = (), np.asarray(number).dtype

    def change(array: np.ndarray) -> None:
        np.atleast_1d(array)[as_key(_at_axis(axis, index))] = number

    def backward(needs: tuple[bool, ...], grad: Tensor, index: Tensor) -> tuple:
        rest = inside = None
        if needs[0]:
            rest = _index_fill(grad, axis, index, 0, in_place=False)
        if needs[1]:
            size = _with_axes(grad)._array.shape[axis]
            once = wrap(np.unique(np.where(index._array < 0, index._array + size, index._array)))
            inside = fit(index_select(_with_axes(grad), axis, once), like)
        return rest, inside

    name = "IndexFillBackward1" if isinstance(value, Tensor) else "IndexFillBackward0"
    return applied(x, in_place, change, name, (x, value), backward, (index,))


def _number(x: Tensor, value: Any, function: str) -> Any:
    """Return a number, or a tensor without axes, as one element of ``x``."""
    if not isinstance(value, Tensor):
        return element(value, x._array.dtype)
    if value._array.ndim:
        raise RuntimeError(
            f"{function} only supports a 0-dimensional value tensor, but got tensor with "
            f"{value._array.ndim} dimension(s)."
        )
    number = np.empty((), x._array.dtype)
    store(number, value._array)
    return number


# Single elements along an axis


def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """Return one element for each index: along ``dim`` the one it names, else at its own place.

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
        line = _gathered(_with_axes(x), 0, _with_axes(index))
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
    """Return the elements that indices, as argsort gives them, name along an axis.

    Unlike with `gather` the other axes broadcast.
    """
    check_arguments("take_along_dim", input=input, indices=indices)
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
    return gather(expand(input, ours), axis, expand(indices, theirs))


def take(input: Tensor, index: Tensor) -> Tensor:
    """Return the elements that indices name, counted as if ``input`` had one axis.

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
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {_name(places)}")
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
        number = number_as(src, x._array.dtype)
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
            inside = _corner(inside, new.shape)
        return rest, inside

    def change(array: np.ndarray) -> None:
        _store_at(array, axis, places, new[tuple([slice(size) for size in places.shape])])

    return applied(x, in_place, change, "ScatterBackward0", (x, src), backward, (index,))


def _store_at(array: np.ndarray, axis: int, places: np.ndarray, values: Any) -> None:
    places, values = np.atleast_1d(places), np.atleast_1d(values)
    np.atleast_1d(array)[_grid_key(axis, places)] = values


def _corner(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return a gradient of the first elements along each axis as one of all: the rest is zero."""
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
    """Add to what is there, or multiply it, as an older form of scatter does."""
    if reduce not in ("add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    if not isinstance(src, Tensor):
        number = number_as(src, x._array.dtype)
        src = wrap(np.full(index._array.shape, number, x._array.dtype))
    if reduce == "add":
        return _scatter_add(x, dim, index, src, in_place=in_place)
    if x.requires_grad or src.requires_grad:
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
        inside = _corner(_gathered(grad, axis, index), new.shape) if needs[1] else None
        return grad if needs[0] else None, inside

    return applied(x, in_place, change, "ScatterAddBackward0", (x, src), backward, (index,))


# Masks


def _check_mask(function: str, mask: Tensor) -> None:
    if mask._array.dtype.kind != "b":
        if function == "masked_select":
            raise RuntimeError("masked_select: expected BoolTensor for mask")
        raise RuntimeError(
            f"{function} only supports boolean masks, but got mask with dtype "
            f"{_name(mask._array).lower()}"
        )


def _masked_fill(x: Tensor, mask: Tensor, value: Any, *, in_place: bool) -> Tensor:
    _check_mask("masked_fill_", mask)
    number = _number(x, value, "masked_fill_")
    shape = broadcast_shape(mask._array.shape, x._array.shape)
    before = x._array.shape, x._array.dtype
    if shape != before[0]:
        if in_place:
            raise RuntimeError(
                f"output with shape {list(before[0])} doesn't match the broadcast shape "
                f"{list(shape)}"
            )
        x = expand(x, shape)
    like = (), value._array.dtype if isinstance(value, Tensor) else x._array.dtype

    def backward(needs: tuple[bool, ...], grad: Tensor, mask: Tensor) -> tuple:
        return (
            _masked_fill(grad, mask, 0, in_place=False) if needs[0] else None,
            fit(_masked_fill(grad, wrap(~mask._array), 0, in_place=False), like)
            if needs[1]
            else None,
        )

    # Not a subscript: a mask is quickest as NumPy's `where`, and it broadcasts.
    return applied(
        x,
        in_place,
        lambda array: np.copyto(array, number, where=mask._array),
        "MaskedFillBackward1" if isinstance(value, Tensor) else "MaskedFillBackward0",
        (x, value),
        backward,
        (mask,),
    )


def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """Return a vector of the elements where a mask, which broadcasts, is True.

    Raises
    ------
    RuntimeError
        The mask is not of bools, or does not broadcast with ``input``.
    """
    check_arguments("masked_select", input=input, mask=mask)
    _check_mask("masked_select", mask)
    shape = broadcast_shape(mask._array.shape, input._array.shape)
    if input._array.shape != shape:
        input = expand(input, shape)
    if mask._array.shape != shape:
        mask = expand(mask, shape)
    if not shape:
        input, mask = reshape(input, 1), reshape(mask, 1)
    return take_at(input, (mask,), "MaskedSelectBackward0")


def _masked_scatter(x: Tensor, mask: Tensor, source: Tensor, *, in_place: bool) -> Tensor:
    _check_mask("masked_scatter_", mask)
    if source._array.dtype != x._array.dtype:
        raise RuntimeError(
            "masked_scatter: expected self and source to have same dtypes but got "
            f"{_name(x._array)} and {_name(source._array)}"
        )
    chosen = np.broadcast_to(mask._array, x._array.shape)
    count = int(np.count_nonzero(chosen))
    if source._array.size < count:
        raise RuntimeError(
            f"Number of elements of source < number of ones in mask: {source._array.size} < {count}"
        )
    new = source._array

    def change(array: np.ndarray) -> None:
        array[np.broadcast_to(mask._array, array.shape)] = new.reshape(-1)[:count]

    def backward(needs: tuple[bool, ...], grad: Tensor, mask: Tensor) -> tuple:
        inside = None
        if needs[1]:
            inside = reshape(_corner(masked_select(grad, mask), (new.size,)), new.shape)
        return (_masked_fill(grad, mask, 0, in_place=False) if needs[0] else None), inside

    return applied(x, in_place, change, "MaskedScatterBackward0", (x, source), backward, (mask,))


# The two forms of each


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


def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Return a copy with source[i] at place index[i] of an axis, for every i."""
    return _index_copy(input, dim, index, source, in_place=False)


def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """Return a copy with a number at some places of an axis."""
    return _index_fill(input, dim, index, value, in_place=False)


def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Any = None,
    *,
    value: Any = None,
    reduce: str | None = None,
) -> Tensor:
    """Return a copy with other elements at the places that indices name along an axis.

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


def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Return a copy with elements added at the places that indices name along an axis.

    Places may be named several times; what goes to one is summed in order.
    """
    check_tensor("scatter_add", input)
    return _scatter_add(input, dim, index, src, in_place=False)


def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Return a copy with a number where a mask, which broadcasts, is True.

    Parameters
    ----------
    input : Tensor
    mask : Tensor of bools
    value : number, or Tensor without axes, through which gradients flow

    Raises
    ------
    RuntimeError
        The mask is not of bools or does not broadcast; the value does not fit into input's dtype.
    """
    check_arguments("masked_fill", input=input, mask=mask)
    return _masked_fill(input, mask, value, in_place=False)


def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Return a copy with the first elements of ``source``, in order, where a mask is True."""
    check_arguments("masked_scatter", input=input, mask=mask)
    shape = broadcast_shape(mask._array.shape, input._array.shape)
    if input._array.shape != shape:
        input = expand(input, shape)
    return _masked_scatter(input, mask, source, in_place=False)


def _in_place(body: Callable, function: Callable) -> Callable:
    """Return the method that does in place what a function does, by their common body."""
    method = partial(body, in_place=True)

    def bound(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return method(self, *args, **kwargs)

    bound.__name__ = bound.__qualname__ = f"{function.__name__}_"
    bound.__wrapped__ = function  # type: ignore[attr-defined]  # help() shows its arguments
    bound.__doc__ = f"Do what `{function.__name__}` does, in place."
    return bound


METHODS = {
    "index_add_": _in_place(_index_add, index_add),
    "index_copy_": _in_place(_index_copy, index_copy),
    "index_fill_": _in_place(_index_fill, index_fill),
    "masked_fill_": _in_place(_masked_fill, masked_fill),
    "masked_scatter_": _in_place(_masked_scatter, masked_scatter),
    "scatter_": _in_place(_scatter, scatter),
    "scatter_add_": _in_place(_scatter_add, scatter_add),
}
