"""Small functions that PyTorch shares with NumPy: bincount, diff, isin, trace, triangles ..."""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, dtypes, scalar_name, wrap
from convcore._tensor.creation.arguments import leaf, too_large
from convcore._tensor.device import check_device
from convcore.autograd.node import record, record_without_derivative
from convcore.engine.integers import as_int
from convcore.engine.runtime.checks import plain
from convcore.functions._support.arguments import check_kind, check_optional, check_tensor
from convcore.functions._support.axes import expand_to, wrap_dim
from convcore.functions.elementwise.arithmetic import operand, sub
from convcore.functions.elementwise.in_float32 import in_float32
from convcore.functions.elementwise.logic import logical_xor
from convcore.functions.shapes.convert import clone
from convcore.functions.shapes.joining import cat
from convcore.functions.shapes.slicing import diagonal_of, placed, slice_of

__all__ = ["bincount", "diff", "isin", "trace", "tril_indices", "triu_indices"]


# Counting and finding


@names_arguments
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Count each number from 0 to the largest, or sum the weights of each.

    Parameters
    ----------
    input : Tensor of integers, not negative, with one axis
    weights : Tensor of as many numbers, or None
    minlength : int
        The result has at least so many elements.

    Returns
    -------
    Tensor of int64; with weights of float32 for float32, of float64 for any other dtype

    Raises
    ------
    RuntimeError
        A number is negative, or the shapes are not as they should be.
    NotImplementedError
        ``input`` is not of integers.

    Examples
    --------
    >>> import convcore
    >>> convcore.bincount(convcore.tensor([1, 1, 3]))
    tensor([0, 2, 0, 1])
    """
    check_tensor("bincount", input)
    check_optional("bincount", weights=weights)
    plain(input._array)  # on meta there is nothing to count
    array = input._array
    minlength = as_int(minlength)
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if array.ndim == 1 and array.size == 0:
        return wrap(np.zeros(minlength, np.int64))
    if array.ndim != 1 or array.min() < 0:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    check_kind("bincount_cpu", input, "iu")
    # NumPy's own count of the results wraps around, and it writes outside of them.
    if max(int(array.max()) + 1, minlength) >= 2**60:
        raise RuntimeError(
            "bincount(): the largest element of input and minlength must be less than 2**60, got "
            f"{array.max()} and {minlength}"
        )
    if weights is None:
        return wrap(np.bincount(array, minlength=minlength))
    if weights._array.shape != array.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    dtype = np.float32 if weights._array.dtype == np.float32 else np.float64
    sums = wrap(np.bincount(array, weights._array, minlength).astype(dtype))
    record_without_derivative("bincount", (weights,), sums)
    return sums


@names_arguments
def isin(
    elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False
) -> Tensor:
    """Return for each of ``elements`` whether it is among ``test_elements``.

    Parameters
    ----------
    elements, test_elements : Tensor or number, one of them at least a Tensor
    assume_unique : ignored
    invert : bool
        Whether it is not among them.

    Returns
    -------
    Tensor of bool, of the shape of ``elements``

    Raises
    ------
    RuntimeError
        A tensor of bools or complex numbers.
    """
    pair = [operand(one, "isin()") for one in (elements, test_elements)]
    if not any(isinstance(one, Tensor) for one in pair):
        raise TypeError("isin() needs a Tensor among its arguments, but got two numbers")
    for one in pair:
        if isinstance(one, Tensor) and one._array.dtype.kind in "bc":
            name = scalar_name(one._array.dtype)
            raise RuntimeError(f"Unsupported input type encountered for isin(): {name}")
    a, b = (one._array if isinstance(one, Tensor) else one for one in pair)
    return wrap(np.asarray(np.isin(a, b, invert=invert)))


# Differences


@names_arguments
def diff(
    input: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """Return the differences of neighbours along an axis; of bools whether they differ.

    Parameters
    ----------
    input : Tensor with an axis or more
    n : int
        How often differences are taken.
    dim : int
        The axis; it gets shorter by one each time.
    prepend, append : Tensor or None
        What is put before and after ``input`` first, of its shape except along the axis.

    Raises
    ------
    RuntimeError
        No axes, a negative ``n``, or shapes that do not go together.

    Examples
    --------
    >>> import convcore
    >>> convcore.diff(convcore.tensor([1, 4, 9]))
    tensor([3, 5])
    """
    check_tensor("diff", input)
    rank = input._array.ndim
    if rank == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    axis = wrap_dim(dim, rank)
    for more in (prepend, append):
        if more is not None:
            _check_neighbour(input._array.shape, more._array.shape, axis)
    n = as_int(n)
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    if n == 0:
        return clone(input)
    if prepend is not None or append is not None:
        input = cat([x for x in (prepend, input, append) if x is not None], axis)
    minus = logical_xor if input._array.dtype.kind == "b" else sub
    size = input._array.shape[axis]
    for length in range(size, size - min(n, size), -1):
        input = minus(slice_of(input, axis, 1, length), slice_of(input, axis, 0, length - 1))
    return input


def _check_neighbour(shape: tuple[int, ...], other: tuple[int, ...], axis: int) -> None:
    if len(shape) != len(other):
        raise RuntimeError("diff expects prepend or append to be the same dimension as input")
    for one, (size, found) in enumerate(zip(shape, other, strict=True)):
        if size != found and one != axis:
            raise RuntimeError(
                "diff expects the shape of tensor to prepend or append to match that of input "
                f"except along the differencing dimension; input.size({one}) = {size}, but got "
                f"tensor.size({one}) = {found}"
            )


# Matrices


@in_float32
def trace(input: Tensor) -> Tensor:
    """Return the sum of a matrix's diagonal; of integers as int64.

    Raises
    ------
    RuntimeError
        The tensor is no matrix.
    """
    check_tensor("trace", input)
    array = input._array
    if array.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {array.ndim}")
    check_kind("trace", input, "fciu")
    out = wrap(np.asarray(array.trace(dtype=np.int64 if array.dtype.kind in "iu" else None)))
    shape = array.shape
    record(
        "TraceBackward0",
        (input,),
        out,
        lambda needs, grad: placed(
            expand_to(grad, (0,), (min(shape),)), shape, diagonal_of, "DiagonalBackward0"
        ),
    )
    return out


@names_arguments
def tril_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = dtypes.int64, device: Any = None
) -> Tensor:
    """Return the indices of a matrix's lower triangle, up to a diagonal.

    Parameters
    ----------
    row, col : int
        The matrix's sizes.
    offset : int
        0 is the main diagonal, 1 the one right of it.
    dtype : int64 or int32
    device : 'cpu' or 'meta'

    Returns
    -------
    (2, number of places)
        The rows, and the columns.

    Raises
    ------
    RuntimeError
        A size is negative.
    NotImplementedError
        Another dtype.

    Examples
    --------
    >>> import convcore
    >>> convcore.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    return _triangle("tril_indices", np.tril_indices, row, col, offset, dtype, device)


@names_arguments
def triu_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = dtypes.int64, device: Any = None
) -> Tensor:
    """Return the indices of a matrix's upper triangle; see `tril_indices`."""
    return _triangle("triu_indices", np.triu_indices, row, col, offset, dtype, device)


def _triangle(
    name: str, function: Any, row: int, col: int, offset: int, dtype: Any, device: Any
) -> Tensor:
    check_device(device)
    row, col, offset = as_int(row), as_int(col), as_int(offset)
    for what, size in (("row", row), ("col", col)):
        if size < 0:
            raise RuntimeError(f"{what} must be non-negative, got{size}")
    target = dtypes.as_numpy(dtypes.int64 if dtype is None else dtype)
    if target not in (np.int64, np.int32):
        raise NotImplementedError(f"\"{name}\" not implemented for '{scalar_name(target)}'")
    # Rows below an upper triangle, and columns beside a lower one, are empty, however many.
    if function is np.triu_indices:
        row = max(min(row, col - offset), 0)
    else:
        col = max(min(col, row + offset), 0)
    if row * col >= _MOST_PLACES:
        raise too_large((row, col))
    return leaf(np.stack(function(row, offset, col)).astype(target), device=device)


# Of a matrix whose triangle is looked for: beyond, NumPy's own counts wrap around.
_MOST_PLACES = 2**60


FUNCTIONS_ONLY = {"isin", "tril_indices", "triu_indices"}
