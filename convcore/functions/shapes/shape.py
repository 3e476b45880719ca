"""Shape changes (reshape, view, transpose, squeeze ...): views or copies as in PyTorch.

A view that picks some elements (select, narrow, diagonal) is undone by placing the gradient into
zeros, `placed`; one that only renames axes is undone by renaming them back.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from convcore._errors.calls import names_arguments, typename
from convcore._tensor import Tensor, contiguous_format, dtypes, scalar_name, wrap
from convcore.autograd import views
from convcore.autograd.node import describe, record
from convcore.functions._support.arguments import check_tensor, ints
from convcore.functions._support.axes import wrap_dim
from convcore.functions.elementwise.arithmetic import conj
from convcore.functions.shapes.convert import clone, contiguous

__all__ = [
    "adjoint",
    "flatten",
    "moveaxis",
    "movedim",
    "permute",
    "ravel",
    "reshape",
    "squeeze",
    "swapaxes",
    "swapdims",
    "t",
    "transpose",
    "unflatten",
    "unsqueeze",
]


# Arguments


def wrap_dims(dims: Sequence[int], rank: int) -> tuple[int, ...]:
    """Return the numbers of several axes, which must differ."""
    found = tuple([wrap_dim(dim, rank) for dim in dims])
    if len(set(found)) != len(found):
        twice = next(dim for dim in found if found.count(dim) > 1)
        raise RuntimeError(f"dim {twice} appears multiple times in the list of dims")
    return found


def _resolved(sizes: tuple[int, ...], n_elements: int) -> tuple[int, ...]:
    """Return sizes with -1 replaced by the size that fits."""
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


def view(self: Tensor, size: Any = None, *more: int, dtype: Any = None) -> Tensor:
    """Return the same memory in another shape, or read as another dtype.

    Parameters
    ----------
    size : ints or one sequence of them, where one may be -1; or a dtype, whose result is outside
        the graph.
    dtype : the dtype, by name

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
    size = dtype if size is None else size
    if isinstance(size, dtypes.dtype):
        return _read_as(self, size.numpy)
    sizes = _resolved(ints("view", "size", size, more), self._array.size)
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
    if dtype.itemsize != array.itemsize:
        fault = _misfit(x, dtype.itemsize // array.itemsize)
        if fault is not None:
            want, got = fault
            raise RuntimeError(
                f"self.{want} to view {scalar_name(array.dtype)} as {scalar_name(dtype)} "
                f"(different element sizes){got}"
            )
    viewed = array.view(dtype)
    if not array.size and dtype.itemsize != array.itemsize:  # NumPy forgets the strides
        steps = [step * array.itemsize for step in x.stride()[:-1]]
        viewed = np.ndarray(viewed.shape, dtype, viewed, 0, (*steps, dtype.itemsize))
    out = wrap(viewed)
    out._counter = x._counter
    return out


def _misfit(x: Tensor, ratio: int) -> tuple[str, str] | None:
    """Return what must be, and what is, where elements of another size do not fit.

    ``ratio`` is that of the new size to the old; 0 if it is smaller.
    """
    if x._array.ndim == 0:
        return "dim() cannot be 0", ""
    *outer, last = x.stride()
    parts = [("size(-1)", x._array.shape[-1]), ("storage_offset()", x.storage_offset())]
    parts += [(f"stride({axis})", stride) for axis, stride in enumerate(outer)]
    if ratio:
        for name, value in parts[:2] if last != 1 else parts:
            if value % ratio:
                return f"{name} must be divisible by {ratio}", f", but got {value}"
    return None if last == 1 else ("stride(-1) must be 1", f", but got {last}")


@names_arguments
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
    sizes = _resolved(ints("reshape", "shape", shape, more), array.size)
    if array.flags.c_contiguous:
        return _view_to(input, sizes)
    if _is_viewable(array, sizes):
        return _view_to(input, sizes, "ReshapeAliasBackward0")
    return unsafe_reshape(clone(input, memory_format=contiguous_format), sizes)


def unsafe_reshape(fresh: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return a contiguous tensor that nobody else holds in another shape, as no view of it.

    Functions that compose others end in it: what they return may then be detached or changed in
    place like any result of its own.
    """
    before = fresh._array.shape
    out = wrap(fresh._array.reshape(shape))
    record("UnsafeViewBackward0", (fresh,), out, lambda needs, grad: reshape(grad, before))
    describe(out, size=shape)
    return out


@names_arguments
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
    """Return the elements as a vector."""
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
    if not isinstance(sizes, Sequence):
        kind = type(sizes).__name__
        raise TypeError(f"unflatten(): argument 'sizes' must be tuple of ints, not {kind}")
    new = ints("unflatten", "sizes", sizes)
    if not new:
        raise RuntimeError("unflatten: sizes must be non-empty")
    if not shape:
        raise RuntimeError("unflatten: a tensor of no dimensions has none to split")
    try:
        new = _resolved(new, shape[axis])
    except RuntimeError:
        raise RuntimeError(
            f"unflatten: Provided sizes {list(new)} don't multiply up to the size of dim {axis} "
            f"({shape[axis]}) in the input tensor"
        ) from None
    return view(input, (*shape[:axis], *new, *shape[axis + 1 :]))


@names_arguments
def squeeze(input: Tensor, dim: int | Sequence[int] | None = None, *more: int) -> Tensor:
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
    elif more or isinstance(dim, tuple | list):
        dims, name = wrap_dims(ints("squeeze", "dim", dim, more), len(shape)), "SqueezeBackward2"
    else:
        dims, name = (wrap_dim(dim, len(shape)),), "SqueezeBackward1"
    axes = tuple([axis for axis in dims if shape and shape[axis] == 1])
    array = input._array.squeeze(axes)
    out = views.view(input, array, name, lambda needs, grad: reshape(grad, shape))
    describe(out, size=array.shape)
    return out


@names_arguments
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
    given = ints("permute", "dims", dims, more)
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
        x, x._array.swapaxes(a, b), name, lambda needs, grad: _exchange(grad, a, b, name)
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
    if isinstance(source, tuple | list) != isinstance(destination, tuple | list):
        raise TypeError(
            "movedim(): arguments 'source' and 'destination' must be two ints or two tuples of "
            f"ints, not {typename(source)} and {typename(destination)}"
        )
    if len(sources) != len(targets):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(sources)} dims) should "
            "contain the same number of dims as destination "
            f"({list(targets)} dims)"
        )
    for name, dims in (("source", sources), ("destination", targets)):
        wrapped = [wrap_dim(dim, rank) for dim in dims]
        if len(set(wrapped)) != len(wrapped):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(dims)})")
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


METHODS = {
    "H": property(_matrix_adjoint),
    "T": property(_reversed_axes),
    "mH": property(adjoint),
    "mT": property(_matrices_transposed),
    "reshape_as": reshape_as,
    "view": view,
    "view_as": view_as,
}
