"""Broadcasting: expand, and its adjoint, the sum down to a smaller shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore._tensor.dtypes import INEXACT
from convcore._tensor.size import Size
from convcore.autograd.node import record
from convcore.autograd.views import view
from convcore.engine.runtime.casts import astype
from convcore.functions._support.arguments import check_arguments, check_tensor, ints, typename
from convcore.functions._support.axes import total_of
from convcore.functions._support.errstate import ignore_errstate

__all__ = [
    "broadcast_shapes",
    "broadcast_tensors",
    "broadcast_to",
    "expand",
    "expand_as",
    "sum_to_size",
]


def expand(input: Tensor, size: Any, *more: int) -> Tensor:
    """Return a view in which axes of size 1 are repeated, and new ones put before them.

    Parameters
    ----------
    input : Tensor
    size : ints, or one sequence of them
        -1 keeps an axis as it is.

    Raises
    ------
    RuntimeError
        Fewer sizes than axes, or another size for an axis that is not 1.

    Examples
    --------
    >>> import convcore
    >>> convcore.tensor([[1], [2]]).expand(2, 3)
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    check_tensor("expand", input)
    return _expand_to(
        input, _expanded_shape(input._array.shape, ints("expand", "size", size, more))
    )


def _expanded_shape(shape: tuple[int, ...], given: Sequence[int]) -> tuple[int, ...]:
    new = len(given) - len(shape)
    if new < 0:
        raise RuntimeError(
            f"expand(size={list(given)}): the number of sizes provided ({len(given)}) must be "
            f"greater or equal to the number of dimensions in the tensor ({len(shape)})"
        )
    sizes = []
    for axis, size in enumerate(given):
        old = shape[axis - new] if axis >= new else None
        if size == -1:
            if old is None:
                raise RuntimeError(
                    f"The expanded size of the tensor (-1) isn't allowed in a leading, "
                    f"non-existing dimension {axis}"
                )
            size = old
        elif old is not None and old not in (1, size):
            raise RuntimeError(
                f"The expanded size of the tensor ({size}) must match the existing size ({old}) at "
                f"non-singleton dimension {axis}.  Target sizes: {list(given)}.  Tensor sizes: "
                f"{list(shape)}"
            )
        sizes.append(size)
    return tuple(sizes)


def _expand_to(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    array = x._array
    before = array.shape
    new = len(shape) - len(before)
    strides = [
        0 if size != old else stride
        for size, old, stride in zip(shape[new:], before, array.strides, strict=True)
    ]
    for size in reversed(shape[:new]):  # a new axis of one element has PyTorch's stride
        step = strides[0] * shape[len(shape) - len(strides)] if strides else 0
        strides.insert(0, 0 if size != 1 else step)
    # Not broadcast_to, whose result is read-only: a size that does not change must stay writable,
    # and a stride of zero is refused by the in-place operations themselves.
    try:
        expanded = np.lib.stride_tricks.as_strided(array, shape, strides, subok=True)
    except (OverflowError, ValueError):  # NumPy counts the bytes as if each element had its own
        raise RuntimeError(f"expand(): argument 'size' is too large: {list(shape)}") from None
    return view(x, expanded, "ExpandBackward0", lambda needs, grad: sum_to(grad, before))


def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """Return a view of ``input`` expanded to the shape of ``other``."""
    check_arguments("expand_as", input=input, other=other)
    return expand(input, tuple(other._array.shape))


def broadcast_to(input: Tensor, size: Sequence[int]) -> Tensor:
    """Return a view of ``input`` expanded to ``size``."""
    if not isinstance(size, tuple | list):
        kind = typename(size)
        raise TypeError(f"broadcast_to(): argument 'size' must be tuple of ints, not {kind}")
    return expand(input, size)


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Return all tensors in the shape that they broadcast to: themselves, or views of them."""
    for position, tensor in enumerate(tensors, 1):
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"broadcast_tensors(): argument 'tensors' (position {position}) must be Tensor, "
                f"not {type(tensor).__name__}"
            )
    shape = broadcast_shape(*(tensor._array.shape for tensor in tensors))
    return tuple([x if x._array.shape == shape else expand(x, shape) for x in tensors])


def broadcast_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that some shapes broadcast to, or raise PyTorch's error."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise RuntimeError(_mismatch(shapes)) from None


def joint_shape(*operands: Any) -> tuple[int, ...]:
    """Return the shape that arrays and numbers broadcast to, or raise PyTorch's error."""
    return broadcast_shape(*[getattr(one, "shape", ()) for one in operands])


def broadcast_shapes(*shapes: Any) -> Size:
    """Return the size that tensors of the given shapes broadcast to; an int is a shape, too.

    Raises
    ------
    RuntimeError
        They do not broadcast.
    ValueError
        A size is negative.
    """
    sizes = [(n,) if isinstance(n, int) else n for n in shapes]
    for shape in sizes:
        if not isinstance(shape, tuple | list) or not all(isinstance(n, int) for n in shape):
            raise RuntimeError(
                "Input shapes should be of type ints, a tuple of ints, or a list of ints, got "
                f"{shape}"
            )
    found = [1] * max(map(len, sizes), default=0)
    for number, shape in enumerate(sizes):
        for axis in range(-1, -1 - len(shape), -1):
            n = shape[axis]
            if n < 0:
                raise ValueError("Attempting to broadcast a dimension with negative length!")
            if n != 1 and found[axis] not in (1, n):
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {n} at {axis}! Mismatching "
                    f"argument at index {number} had {shape}; but expected shape should be "
                    f"broadcastable to {found}"
                )
            found[axis] = found[axis] if n == 1 else n
    return Size(found)


def _mismatch(shapes: Sequence[tuple[int, ...]]) -> str:
    """Name the axis in which two shapes do not broadcast, as PyTorch does."""
    a = shapes[0]
    for b in shapes[1:]:
        rank = max(len(a), len(b))
        for axis in range(rank - 1, -1, -1):
            m, n = (s[axis - rank + len(s)] if axis - rank + len(s) >= 0 else 1 for s in (a, b))
            if m != n and 1 not in (m, n):
                return (
                    f"The size of tensor a ({m}) must match the size of tensor b ({n}) at "
                    f"non-singleton dimension {axis}"
                )
        both = zip_longest(reversed(a), reversed(b), fillvalue=1)
        a = tuple(n if m == 1 else m for m, n in both)[::-1]
    return f"a shape has a size below 0, or too large a one: {[list(one) for one in shapes]}"


def sum_to_size(input: Tensor, size: Any, *more: int) -> Tensor:
    """Return ``input`` summed over the axes along which ``size`` would be repeated to give it.

    Integers and bools that are summed give int64, as of ``sum``.

    Raises
    ------
    RuntimeError
        ``size`` does not expand to the shape of ``input``.
    """
    check_tensor("sum_to_size", input)
    given = ints("sum_to_size", "size", size, more)
    shape = input._array.shape
    fits = len(given) <= len(shape) and all(
        small in (1, large)
        for small, large in zip(given, shape[len(shape) - len(given) :], strict=True)
    )
    if not fits:
        raise RuntimeError(f"size {list(given)} is not expandable to size {list(shape)}.")
    if given != shape and input._array.dtype.kind in "biu":
        input = cast(input, np.dtype(np.int64))
    return sum_to(input, given)


def sum_to(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return ``x`` summed to a shape that broadcasts to its own: the adjoint of expand."""
    array = x._array
    before = array.shape
    if before == shape:
        return x
    new = len(before) - len(shape)
    axes = tuple(range(new)) + tuple(
        [axis for axis in range(new, len(before)) if shape[axis - new] == 1 != before[axis]]
    )
    out = wrap(total_of(array, axes, keepdims=True).reshape(shape))
    record("SumBackward1", (x,), out, lambda needs, grad: _expand_to(grad, before))
    return out


def fit(grad: Tensor, like: tuple[tuple[int, ...], np.dtype]) -> Tensor:
    """Return a gradient in the shape and dtype of the operand that it belongs to.

    The operand may have been broadcast, and promoted to another dtype, before it was used.
    """
    shape, dtype = like
    if grad._array.shape != shape:
        grad = sum_to(grad, shape)
    return grad if grad._array.dtype == dtype else cast(grad, dtype)


def cast(x: Tensor, dtype: np.dtype) -> Tensor:
    """Return ``x`` in another dtype; of a complex number turned real, the real part."""
    array = x._array
    before = array.dtype
    if array.dtype.kind == "c" and dtype.kind not in "c":
        array = array.real
    out = wrap(ignore_errstate(astype, array, dtype))
    if dtype.kind in INEXACT:
        record("ToCopyBackward0", (x,), out, lambda needs, grad: cast(grad, before))
    return out


def fitted(backward: Callable, *operands: Any) -> Callable:
    """Return a backward whose results are put into the operands' shapes and dtypes."""
    likes: list[Any] = [  # None for a number, which has no gradient
        (x._array.shape, x._array.dtype) if isinstance(x, Tensor) else None for x in operands
    ]

    def in_shape(needs: tuple[bool, ...], grad: Tensor, *saved: Any) -> tuple:
        grads = backward(needs, grad, *saved)
        return tuple(
            [None if g is None else fit(g, like) for g, like in zip(grads, likes, strict=True)]
        )

    return in_shape


FUNCTIONS_ONLY = {"broadcast_shapes", "broadcast_tensors"}
