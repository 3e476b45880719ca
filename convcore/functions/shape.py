"""Other shapes of the same elements: views wherever PyTorch gives a view, copies where it copies.

A view that picks some elements (select, narrow, diagonal) is undone by placing the gradient into
zeros, `placed`; one that only renames axes is undone by renaming them back.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from operator import index as as_int
from operator import itemgetter
from typing import Any

import numpy as np

from convcore import _dtype
from convcore._creation.memory import empty_preserving
from convcore._tensor import Tensor, contiguous_format, scalar_name, wrap
from convcore.autograd import views
from convcore.autograd.node import describe, record
from convcore.functions._support.arguments import check_tensor
from convcore.functions._support.axes import wrap_dim
from convcore.functions._support.in_place import in_place_methods
from convcore.functions.arithmetic import conj
from convcore.functions.broadcast import sum_to
from convcore.functions.convert import clone, contiguous

__all__ = [
    "adjoint",
    "diag",
    "diag_embed",
    "diagonal",
    "flatten",
    "flip",
    "fliplr",
    "flipud",
    "moveaxis",
    "movedim",
    "narrow",
    "permute",
    "ravel",
    "reshape",
    "roll",
    "rot90",
    "select",
    "squeeze",
    "swapaxes",
    "swapdims",
    "t",
    "tile",
    "transpose",
    "tril",
    "triu",
    "unflatten",
    "unsqueeze",
]

Step = Callable[[np.ndarray], np.ndarray]  # makes a view of an array


# Arguments


def wrap_dims(dims: Sequence[int], rank: int) -> tuple[int, ...]:
    """Return the numbers of several axes, which must differ."""
    found = tuple([wrap_dim(dim, rank) for dim in dims])
    if len(set(found)) != len(found):
        twice = next(dim for dim in found if found.count(dim) > 1)
        raise RuntimeError(f"dim {twice} appears multiple times in the list of dims")
    return found


def ints(first: Any, more: tuple = ()) -> tuple[int, ...]:
    """Return what is given as several ints or as one sequence of them."""
    given = first if isinstance(first, tuple | list) else (first, *more)
    return tuple([number if number.__class__ is int else as_int(number) for number in given])


def _resolved(sizes: tuple[int, ...], n_elements: int) -> tuple[int, ...]:
    """Return sizes with the one that is -1 worked out."""
    known = math.prod(sizes)
    if known == n_elements and (not sizes or min(sizes) >= 0):
        return sizes
    for place, size in enumerate(sizes):
        if size < -1:
            raise RuntimeError(
                f"invalid shape dimension {size} at index {place} of shape {list(sizes)}"
            )
    if sizes.count(-1) > 1:
        raise RuntimeError("only one dimension can be inferred")
    if -1 in sizes:
        known = -known
        if known == 0 == n_elements:
            raise RuntimeError(
                f"cannot reshape tensor of 0 elements into shape {list(sizes)} because the "
                "unspecified dimension size -1 can be any value and is ambiguous"
            )
        if known and n_elements % known == 0:
            return tuple([n_elements // known if size == -1 else size for size in sizes])
    raise RuntimeError(f"shape '{list(sizes)}' is invalid for input of size {n_elements}")


# The same elements in the same order


def view(self: Tensor, size: Any, *more: int) -> Tensor:
    """Return the same memory in another shape, or read as another dtype.

    Parameters
    ----------
    size : ints or one sequence of them, where one may be -1; or a dtype, whose result is outside
        the graph.

    Raises
    ------
    RuntimeError
        The number of elements differs; or the axes to be joined do not lie densely in memory, so
        that only a copy has that shape (`reshape` makes it).

    Examples
    --------
    >>> import convcore
    >>> convcore.tensor([1, 2, 3, 4]).view(2, -1)
    tensor([[1, 2],
            [3, 4]])
    """
    if isinstance(size, _dtype.dtype):
        return _read_as(self, size.numpy)
    sizes = _resolved(ints(size, more), self._array.size)
    if not _is_viewable(self._array, sizes):
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one "
            "dimension spans across two contiguous subspaces). Use .reshape(...) instead."
        )
    return _view_to(self, sizes)


def _view_to(x: Tensor, sizes: tuple[int, ...], name: str = "ViewBackward0") -> Tensor:
    array = x._array
    before = array.shape
    out = views.view(x, array.reshape(sizes), name, lambda needs, grad: reshape(grad, before))
    describe(out, size=sizes)
    return out


def _is_viewable(array: np.ndarray, sizes: tuple[int, ...]) -> bool:
    """Return whether the sizes split and join only axes that lie densely."""
    if array.flags.c_contiguous or array.size == 0:
        return True
    runs: list[int] = []  # joint sizes of neighbouring axes that could be one
    outer = -1
    for size, stride in zip(array.shape, array.strides, strict=True):
        if size == 1:
            continue
        if runs and outer == stride * size:
            runs[-1] *= size
        else:
            runs.append(size)
        outer = stride
    left = 1
    for size in sizes:
        if left == 1 and size != 1:
            left = runs.pop(0)
        if left % size:
            return False
        left //= size
    return True


def _read_as(x: Tensor, dtype: np.dtype) -> Tensor:
    """Return the same bytes as elements of another dtype, outside the graph."""
    array = x._array
    ratio = dtype.itemsize // array.itemsize
    if array.ndim == 0 and dtype.itemsize != array.itemsize:
        raise RuntimeError(
            f"self.dim() cannot be 0 to view {scalar_name(array.dtype)} as "
            f"{scalar_name(dtype)} (different element sizes)"
        )
    if ratio > 1 and array.shape[-1] % ratio:
        raise RuntimeError(
            f"self.size(-1) must be divisible by {ratio} to view {scalar_name(array.dtype)} "
            f"as {scalar_name(dtype)} (different element sizes), but got {array.shape[-1]}"
        )
    out = wrap(array.view(dtype))
    out._counter = x._counter
    return out


def view_as(self: Tensor, other: Tensor) -> Tensor:
    """Return a view in the shape of another tensor."""
    return view(self, other._array.shape)


def reshape(input: Tensor, shape: Any, *more: int) -> Tensor:
    """Return the elements in another shape: a view where one can be made, else a copy.

    Parameters
    ----------
    input : Tensor
    shape : ints or one sequence of them; one may be -1.

    Raises
    ------
    RuntimeError
        The number of elements differs.
    """
    check_tensor("reshape", input)
    array = input._array
    sizes = _resolved(ints(shape, more), array.size)
    if array.flags.c_contiguous:
        return _view_to(input, sizes)
    if _is_viewable(array, sizes):
        return _view_to(input, sizes, "ReshapeAliasBackward0")
    before = array.shape
    copy = clone(input, memory_format=contiguous_format)
    out = wrap(copy._array.reshape(sizes))
    record("UnsafeViewBackward0", (copy,), out, lambda needs, grad: reshape(grad, before))
    describe(out, size=sizes)
    return out


def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """Return the elements in the shape of another tensor."""
    return reshape(self, other._array.shape)


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Join the axes from ``start_dim`` to ``end_dim`` into one.

    Raises
    ------
    RuntimeError
        ``start_dim`` comes after ``end_dim``.
    """
    check_tensor("flatten", input)
    shape = input._array.shape
    start, end = wrap_dim(start_dim, len(shape)), wrap_dim(end_dim, len(shape))
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not shape:
        return reshape(input, 1)
    if start == end:
        return input
    return reshape(input, (*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :]))


def ravel(input: Tensor) -> Tensor:
    """Return the elements along one axis."""
    check_tensor("ravel", input)
    return view(contiguous(input), -1)


def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """Split an axis into several of the given sizes, one of which may be -1.

    Raises
    ------
    RuntimeError
        The sizes do not multiply up to the axis.
    """
    check_tensor("unflatten", input)
    shape = input._array.shape
    axis = wrap_dim(dim, len(shape))
    new = ints(sizes)
    if not new:
        raise RuntimeError("unflatten: sizes must be non-empty")
    try:
        new = _resolved(new, shape[axis])
    except RuntimeError:
        raise RuntimeError(
            f"unflatten: Provided sizes {list(new)} don't multiply up to the size of dim {axis} "
            f"({shape[axis]}) in the input tensor"
        ) from None
    return view(input, (*shape[:axis], *new, *shape[axis + 1 :]))


def squeeze(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Return a view without the axes of size 1: all of them, or those among ``dim``.

    Examples
    --------
    >>> import convcore
    >>> convcore.zeros(1, 2, 1).squeeze(0).shape
    torch.Size([2, 1])
    """
    check_tensor("squeeze", input)
    shape = input._array.shape
    if dim is None:
        dims, name = range(len(shape)), "SqueezeBackward0"
    elif isinstance(dim, tuple | list):
        dims, name = wrap_dims(dim, len(shape)), "SqueezeBackward2"
    else:
        dims, name = (wrap_dim(dim, len(shape)),), "SqueezeBackward1"
    axes = tuple([axis for axis in dims if shape and shape[axis] == 1])
    array = input._array.squeeze(axes)
    out = views.view(input, array, name, lambda needs, grad: reshape(grad, shape))
    describe(out, size=array.shape)
    return out


def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """Return a view with a new axis of size 1 at ``dim``."""
    check_tensor("unsqueeze", input)
    shape = input._array.shape
    axis = wrap_dim(dim, len(shape) + 1)
    sizes = (*shape[:axis], 1, *shape[axis:])
    # reshape gives the new axis PyTorch's stride: memory formats are told from those.
    out = views.view(
        input,
        input._array.reshape(sizes),
        "UnsqueezeBackward0",
        lambda needs, grad: squeeze(grad, axis),
    )
    describe(out, size=sizes)
    return out


# The same elements in another order


def permute(input: Tensor, dims: Any, *more: int) -> Tensor:
    """Return a view with the axes in another order.

    Parameters
    ----------
    input : Tensor
    dims : ints or one sequence of them; axis i of the result is axis dims[i].

    Raises
    ------
    RuntimeError
        There are more or fewer than there are axes, or one is named twice.
    """
    check_tensor("permute", input)
    rank = input._array.ndim
    given = ints(dims, more)
    if len(given) != rank:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the "
            f"length of the desired ordering of dimensions i.e. input.dim() = {rank} is not equal "
            f"to len(dims) = {len(given)}"
        )
    order = tuple([wrap_dim(dim, rank) for dim in given])
    if len(set(order)) != rank:
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return _permute_to(input, order)


def _permute_to(x: Tensor, order: tuple[int, ...]) -> Tensor:
    back = [0] * len(order)
    for new, old in enumerate(order):
        back[old] = new
    back = tuple(back)
    out = views.view(
        x,
        x._array.transpose(order),
        "PermuteBackward0",
        lambda needs, grad: _permute_to(grad, back),
    )
    describe(out, forward=lambda array: array.transpose(order))
    return out


def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Return a view with two axes exchanged."""
    check_tensor("transpose", input)
    rank = input._array.ndim
    a, b = wrap_dim(dim0, rank), wrap_dim(dim1, rank)
    if not rank:
        return views.alias(input, "TransposeBackward0")
    return _exchange(input, a, b, "TransposeBackward0")


def _exchange(x: Tensor, a: int, b: int, name: str) -> Tensor:
    out = views.view(
        x,
        x._array.swapaxes(a, b),
        name,
        lambda needs, grad: _exchange(grad, a, b, name),
    )
    describe(out, forward=lambda array: array.swapaxes(a, b))
    return out


def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """Return a view with two axes exchanged: `transpose` under NumPy's name."""
    check_tensor("swapaxes", input)
    return transpose(input, axis0, axis1)


swapdims = transpose


def t(input: Tensor) -> Tensor:
    """Return a view of a matrix with its axes exchanged; vectors and numbers stay as they are.

    Raises
    ------
    RuntimeError
        The tensor has more than two axes.
    """
    check_tensor("t", input)
    rank = input._array.ndim
    if rank > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {rank}D")
    if rank < 2:
        return views.alias(input, "TBackward0")
    return _exchange(input, 0, 1, "TBackward0")


def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Return a view with some axes at other places; the others keep their order."""
    check_tensor("movedim", input)
    rank = input._array.ndim
    sources = tuple(source) if isinstance(source, tuple | list) else (source,)
    targets = tuple(destination) if isinstance(destination, tuple | list) else (destination,)
    if len(sources) != len(targets):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(sources)} dims) should "
            "contain the same number of dims as destination "
            f"({list(targets)} dims)"
        )
    moved = dict(zip(wrap_dims(targets, rank), wrap_dims(sources, rank), strict=True))
    others = iter([axis for axis in range(rank) if axis not in moved.values()])
    return _permute_to(
        input, tuple([moved[axis] if axis in moved else next(others) for axis in range(rank)])
    )


moveaxis = movedim


def _reversed_axes(self: Tensor) -> Tensor:
    """Return ``x.T``: a view with the axes in the opposite order."""
    rank = self._array.ndim
    if rank not in (0, 2):
        warnings.warn(
            "`x.T` is for matrices: PyTorch deprecates it for tensors of other ranks. Use `x.mT` "
            "for batches of matrices, or `x.permute(...)`.",
            UserWarning,
            stacklevel=2,
        )
    return _permute_to(self, tuple(range(rank))[::-1])


def _matrices_transposed(self: Tensor) -> Tensor:
    """Return ``x.mT``: a view with the last two axes exchanged."""
    rank = self._array.ndim
    if rank < 2:
        raise RuntimeError(
            f"tensor.mT is only supported on matrices or batches of matrices. Got {rank}-D tensor."
        )
    return _exchange(self, rank - 2, rank - 1, "TransposeBackward0")


def adjoint(input: Tensor) -> Tensor:
    """Return the last two axes exchanged, and complex numbers conjugated."""
    check_tensor("adjoint", input)
    if input._array.ndim < 2:
        raise RuntimeError(
            "tensor.adjoint() is only supported on matrices or batches of matrices. "
            f"Got {input._array.ndim}-D tensor."
        )
    return conj(_matrices_transposed(input))


def _matrix_adjoint(self: Tensor) -> Tensor:
    """Return ``x.H``: the adjoint of a matrix."""
    rank = self._array.ndim
    if rank == 0:
        return self
    if rank != 2:
        hint = " For batches of matrices, consider using tensor.mH" if rank > 2 else ""
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {rank}-D tensor.{hint}"
        )
    return adjoint(self)


def flip(input: Tensor, dims: Any, *more: int) -> Tensor:
    """Return a copy with the order along some axes reversed."""
    check_tensor("flip", input)
    array = input._array
    axes = wrap_dims(ints(dims, more), array.ndim)
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
    steps = tuple(shifts) if isinstance(shifts, tuple | list) else (shifts,)
    if dims is None or dims == () or dims == []:
        if len(steps) != 1:
            raise RuntimeError(f"shifts and dimensions must align. shifts: {len(steps)}, dims:{0}")
        axes = None
    else:
        axes = tuple(dims) if isinstance(dims, tuple | list) else (dims,)
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


def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Return a copy turned k times by 90 degrees, from axis dims[0] towards dims[1]."""
    check_tensor("rot90", input)
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    a, b = (wrap_dim(dim, input._array.ndim) for dim in dims)
    if a == b:
        raise RuntimeError(
            f"expected rotation dims to be different, but got dim0 = {a} and dim1 = {b}"
        )
    out = wrap(np.rot90(input._array, k, (a, b)).copy(order="K"))
    record("Rot90Backward0", (input,), out, lambda needs, grad: rot90(grad, -k, (a, b)))
    return out


# Some of the elements


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


def select(input: Tensor, dim: int, index: int) -> Tensor:
    """Return the view of what is at one place of an axis; the axis goes.

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


def narrow(input: Tensor, dim: int, start: int | Tensor, length: int) -> Tensor:
    """Return the view of ``length`` places of an axis from ``start`` on.

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
    first, size = as_int(start), shape[axis]
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
    """Return the view of every step-th place of an axis from ``start`` up to before ``stop``."""
    return picked(x, along(axis, slice(start, stop, step)), "SliceBackward0")


def windows(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Return a view of the windows of ``size`` places along an axis, ``step`` apart.

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
    windows = np.lib.stride_tricks.as_strided(
        array,
        (*shape[:axis], n_windows, *shape[axis + 1 :], size),
        (*strides[:axis], strides[axis] * step, *strides[axis + 1 :], strides[axis]),
    )

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

    def step(array: np.ndarray) -> np.ndarray:
        found = array.diagonal(offset, a, b)
        found.flags.writeable = array.flags.writeable  # NumPy hands it out read-only
        return found

    return picked(input, step, "DiagonalBackward0")


def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return matrices of zeros with the last axis of ``input`` as their diagonals."""
    check_tensor("diag_embed", input)
    shape = input._array.shape
    a, b = wrap_dim(dim1, len(shape) + 1), wrap_dim(dim2, len(shape) + 1)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    sizes = list(shape[:-1])
    for axis in sorted((a, b)):
        sizes.insert(axis, shape[-1] + abs(offset))
    array = np.zeros(sizes, input._array.dtype)
    diagonal(wrap(array), offset, a, b)._array[...] = input._array
    out = wrap(array)
    record("DiagEmbedBackward0", (input,), out, lambda needs, g: diagonal(g, offset, a, b))
    return out


def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return the diagonal of a matrix, copied, or the matrix with a vector as its diagonal.

    Raises
    ------
    RuntimeError
        The tensor is neither.
    """
    check_tensor("diag", input)
    rank = input._array.ndim
    if rank == 1:
        return diag_embed(input, diagonal)
    if rank == 2:
        return clone(_diagonal(input, diagonal))
    raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {rank}D")


_diagonal = diagonal


def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return matrices with zeros above a diagonal; 0 is the main one, 1 the one right of it."""
    check_tensor("tril", input)
    return _triangle(input, np.tril, diagonal, "TrilBackward0")


def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return matrices with zeros below a diagonal; 0 is the main one, 1 the one right of it."""
    check_tensor("triu", input)
    return _triangle(input, np.triu, diagonal, "TriuBackward0")


def _triangle(x: Tensor, function: Any, offset: int, name: str) -> Tensor:
    if x._array.ndim < 2:
        raise RuntimeError(f"{name[:4].lower()}: input tensor must have at least 2 dimensions")
    out = wrap(function(x._array, offset))
    record(name, (x,), out, lambda needs, grad: _triangle(grad, function, offset, name))
    return out


# The elements several times


def repeat(self: Tensor, repeats: Any, *more: int) -> Tensor:
    """Return the tensor repeated along its axes, and along new ones before them.

    Raises
    ------
    RuntimeError
        There are fewer numbers than axes, or one is negative.
    """
    array = self._array
    times = ints(repeats, more)
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
    times = ints(dims, more)
    return repeat(input, (*(1,) * (input._array.ndim - len(times)), *times))


METHODS = {
    "H": property(_matrix_adjoint),
    "T": property(_reversed_axes),
    "mH": property(adjoint),
    "mT": property(_matrices_transposed),
    "repeat": repeat,
    "reshape_as": reshape_as,
    "unfold": windows,
    "view": view,
    "view_as": view_as,
    **in_place_methods(tril, triu),
}
