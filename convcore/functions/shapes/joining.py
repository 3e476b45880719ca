"""Joining tensors: cat, stack, hstack, vstack, dstack, meshgrid."""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from convcore._errors import hinted, hints
from convcore._errors.calls import typename
from convcore._tensor import Tensor, wrap
from convcore._tensor.dtypes import result_numpy
from convcore._tensor.meta import MetaArray, check_together, meta
from convcore.autograd.node import describe, record
from convcore.engine.layers import strided_copy
from convcore.engine.runtime import layout
from convcore.functions._support.axes import with_numpy_names
from convcore.functions._support.kept import MOST_KEPT
from convcore.functions.shapes.broadcast import expand, fit
from convcore.functions.shapes.shape import reshape, unsqueeze, wrap_dim
from convcore.functions.shapes.slicing import select, slice_of

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "cat",
    "column_stack",
    "concat",
    "concatenate",
    "dstack",
    "hstack",
    "meshgrid",
    "row_stack",
    "stack",
    "vstack",
]


@with_numpy_names
def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Concatenate tensors along an existing axis.

    Parameters
    ----------
    tensors : sequence of Tensors of one shape but for ``dim``; those of shape (0,) are left out.
        Dtypes are promoted.  If all are channels_last, so is the result.
    dim : int

    Raises
    ------
    RuntimeError
        The shapes do not fit together.
    ValueError
        There is no tensor.

    Examples
    --------
    >>> import convcore
    >>> convcore.cat([convcore.zeros(1, 2), convcore.ones(1, 2)])
    tensor([[0., 0.],
            [1., 1.]])
    """
    tensors = _checked(tensors, "cat")
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    arrays = [tensor._array for tensor in tensors]
    find = _joint if dim.__class__ is int else _joint.__wrapped__
    joint = find(dim, *[(array.shape, array.dtype) for array in arrays])
    axis = joint.axis
    used = [array for array in arrays if array.shape != (0,)] or arrays[:1]
    out = wrap(_concatenated(used, joint))

    def backward(needs: tuple[bool, ...], grad: Tensor) -> tuple:
        return tuple(
            [
                _part(grad, axis, start, like) if need else None
                for need, start, like in zip(needs, joint.starts, joint.likes, strict=True)
            ]
        )

    record("CatBackward0", tensors, out, backward)
    describe(out, dim=axis)
    return out


def _concatenated(arrays: list[np.ndarray], joint: _Joint) -> np.ndarray:
    if isinstance(arrays[0], MetaArray):
        check_together(*arrays)
        return meta(joint.shape, joint.dtype)
    out = layout.empty(joint.shape, joint.dtype, _all_channels_last(arrays))
    if out.nbytes >= strided_copy.LEAST_BYTES:
        strided_copy.concatenate(arrays, joint.axis, out)
    else:
        np.concatenate(arrays, joint.axis, out=out, casting="unsafe")
    return out


class _Joint(NamedTuple):
    """What arrays make when they are joined: the axis, the result, and where each begins."""

    axis: int
    shape: tuple[int, ...]
    dtype: np.dtype
    starts: tuple[int, ...]
    likes: tuple[tuple[tuple[int, ...], np.dtype], ...]


@functools.lru_cache(maxsize=MOST_KEPT)
def _joint(dim: int, *likes: tuple[Any, Any]) -> _Joint:
    """Check the shapes and dtypes of arrays once, and say how they are joined."""
    shapes = [shape for shape, _ in likes]
    if () in shapes:
        raise RuntimeError(
            f"zero-dimensional tensor (at position {shapes.index(())}) cannot be concatenated"
        )
    first = next((shape for shape in shapes if shape != (0,)), shapes[0])
    axis = 0 if first == (0,) else wrap_dim(dim, len(first))
    _check_sizes(shapes, axis, first)
    lengths = [shape[axis] if shape != (0,) else 0 for shape in shapes]
    *starts, total = itertools.accumulate(lengths, initial=0)
    shape = (*first[:axis], total, *first[axis + 1 :])
    return _Joint(axis, shape, _common_dtype([dtype for _, dtype in likes]), tuple(starts), likes)


concat = concatenate = cat


def _checked(tensors: Any, function: str) -> tuple[Tensor, ...]:
    if isinstance(tensors, Tensor):
        raise hinted(
            TypeError(
                f"{function}(): argument 'tensors' (position 1) must be tuple of Tensors, "
                "not Tensor"
            ),
            f"put the tensors into a list: torch.{function}([a, b])",
        )
    if isinstance(tensors, str | bytes | dict) or not hasattr(tensors, "__iter__"):
        raise TypeError(
            f"{function}(): argument 'tensors' (position 1) must be tuple of Tensors, not "
            f"{typename(tensors)}"
        )
    tensors = tuple(tensors)
    for place, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise hinted(
                TypeError(
                    f"expected Tensor as element {place} in argument 0, but got {typename(tensor)}"
                ),
                hints.of_pytorch(tensor),
            )
    return tensors


def _check_sizes(shapes: list[tuple[int, ...]], axis: int, first: tuple[int, ...]) -> None:
    others = first[:axis] + first[axis + 1 :]
    for place, shape in enumerate(shapes):
        if shape == (0,):
            continue
        if len(shape) != len(first):
            raise RuntimeError(
                f"Tensors must have same number of dimensions: got {len(first)} and {len(shape)}"
            )
        if shape[:axis] + shape[axis + 1 :] != others:
            expected, found = next(
                (a, b)
                for d, (a, b) in enumerate(zip(first, shape, strict=True))
                if a != b and d != axis
            )
            raise RuntimeError(
                f"Sizes of tensors must match except in dimension {axis}. Expected size "
                f"{expected} but got size {found} for tensor number {place} in the list."
            )


def _common_dtype(dtypes: list[np.dtype]) -> np.dtype:
    if len(set(dtypes)) == 1:
        return dtypes[0]
    return result_numpy(*[np.empty(1, dtype) for dtype in dtypes])


def _all_channels_last(arrays: list[np.ndarray]) -> bool:
    return arrays[0].ndim in (4, 5) and all(
        layout.is_channels_last(array.shape, array.strides) for array in arrays
    )


def _part(grad: Tensor, axis: int, start: int, like: tuple) -> Tensor:
    """Return the gradient of one of the tensors that were joined."""
    shape = like[0]
    if shape == (0,):
        return wrap(np.zeros(*like))
    return fit(slice_of(grad, axis, start, start + shape[axis]), like)


@with_numpy_names
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Stack tensors of one shape along a new axis.

    Raises
    ------
    RuntimeError
        The shapes differ, or there is no tensor.
    """
    tensors = _checked(tensors, "stack")
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    arrays = [tensor._array for tensor in tensors]
    shape = arrays[0].shape
    axis = wrap_dim(dim, len(shape) + 1)
    for place, array in enumerate(arrays):
        if array.shape != shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(shape)} at entry 0 "
                f"and {list(array.shape)} at entry {place}"
            )
    out = wrap(_stacked(arrays, axis))
    likes = [(shape, array.dtype) for array in arrays]

    def backward(needs: tuple[bool, ...], grad: Tensor) -> tuple:
        return tuple(
            [
                fit(select(grad, axis, place), likes[place]) if need else None
                for place, need in enumerate(needs)
            ]
        )

    record("StackBackward0", tensors, out, backward)
    describe(out, dim=axis)
    return out


def _stacked(arrays: list[np.ndarray], axis: int) -> np.ndarray:
    shape, dtype = arrays[0].shape, _common_dtype([array.dtype for array in arrays])
    sizes = (*shape[:axis], len(arrays), *shape[axis:])
    if isinstance(arrays[0], MetaArray):
        check_together(*arrays)
        return meta(sizes, dtype)
    out = _empty_stack(arrays, axis, sizes, dtype)
    np.stack(arrays, axis, out=out, casting="unsafe")
    return out


def _empty_stack(
    arrays: list[np.ndarray], axis: int, sizes: tuple[int, ...], dtype: np.dtype
) -> np.ndarray:
    """Return a new array for a stack; images in channels_last stay so, along a first new axis."""
    shape = arrays[0].shape
    if axis == 0 and _all_channels_last(arrays):
        joint = (len(arrays) * shape[0], *shape[1:])
        return layout.empty(joint, dtype, True).reshape(sizes)
    return np.empty(sizes, dtype)


def _tensors(first: Any, more: tuple, function: str) -> tuple[Tensor, ...]:
    """Return the tensors, given one by one or as one sequence."""
    return _checked((first, *more) if isinstance(first, Tensor) else first, function)


def atleast_1d(tensors: Any, *more: Tensor) -> Any:
    """Return each tensor with one axis at least."""
    return _each(tensors, more, lambda x: x if x._array.ndim else reshape(x, 1))


def atleast_2d(tensors: Any, *more: Tensor) -> Any:
    """Return each tensor with two axes at least; a vector becomes a row."""
    return _each(tensors, more, _as_matrix)


def atleast_3d(tensors: Any, *more: Tensor) -> Any:
    """Return each tensor with three axes at least; a matrix gets a new last axis."""

    def deep(x: Tensor) -> Tensor:
        x = _as_matrix(x)
        return unsqueeze(x, -1) if x._array.ndim == 2 else x

    return _each(tensors, more, deep)


def _as_matrix(x: Tensor) -> Tensor:
    if x._array.ndim == 0:
        return reshape(x, 1, 1)
    return unsqueeze(x, 0) if x._array.ndim == 1 else x


def _each(first: Any, more: tuple, function: Any) -> Any:
    if isinstance(first, Tensor) and not more:
        return function(first)
    return tuple([function(x) for x in _tensors(first, more, "atleast")])


def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Join tensors along the second axis; vectors and numbers along the first."""
    tensors = atleast_1d(_checked(tensors, "hstack"))
    if not tensors:
        raise RuntimeError("hstack expects a non-empty TensorList")
    return cat(tensors, 0 if tensors[0]._array.ndim == 1 else 1)


def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Join tensors along the first axis; vectors are rows."""
    tensors = _checked(tensors, "vstack")
    if not tensors:
        raise RuntimeError("vstack expects a non-empty TensorList")
    return cat(atleast_2d(tensors), 0)


row_stack = vstack


def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Join tensors along the third axis, which smaller ones get."""
    tensors = _checked(tensors, "dstack")
    if not tensors:
        raise RuntimeError("dstack expects a non-empty TensorList")
    return cat(atleast_3d(tensors), 2)


def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Join tensors along the second axis; vectors and numbers are columns."""
    tensors = _checked(tensors, "column_stack")
    if not tensors:
        raise RuntimeError("column_stack expects a non-empty TensorList")
    columns = [reshape(x, x._array.size, 1) if x._array.ndim < 2 else x for x in tensors]
    return cat(columns, 1)


def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Return coordinate grids of the vectors: one view for each, expanded to all sizes.

    Parameters
    ----------
    tensors : vectors, or numbers; several or one sequence
    indexing : 'ij', or 'xy', which exchanges the first two axes of the grid; 'ij' if it is not
        given, with a warning
    """
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if indexing is None:
        warnings.warn(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing "
            "argument.",
            stacklevel=2,
        )
    vectors = atleast_1d(_tensors(tensors[0], tensors[1:], "meshgrid"))
    if not vectors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for what in ("dtype", "device"):
        if any(getattr(one, what) != getattr(vectors[0], what) for one in vectors):
            raise RuntimeError(f"meshgrid expects all tensors to have the same {what}")
    for vector in vectors:
        if vector._array.ndim > 1:
            raise RuntimeError(
                f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: "
                f"{vector._array.ndim}D"
            )
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(
            f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}'
        )
    places = list(range(len(vectors)))
    if indexing == "xy":
        places[:2] = places[:2][::-1]
    sizes = [vectors[place]._array.size for place in places]
    return tuple(
        [
            expand(reshape(vector, [-1 if axis == place else 1 for axis in places]), sizes)
            for place, vector in enumerate(vectors)
        ]
    )


FUNCTIONS_ONLY = __all__
