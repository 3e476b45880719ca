"""Embeddings: rows of a matrix looked up by their numbers."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from convcore._errors import hinted, hints
from convcore._tensor import Tensor, legacy_name, wrap
from convcore.autograd.grad_mode import no_grad
from convcore.autograd.node import record
from convcore.autograd.views import write
from convcore.functions._support.arguments import check_arguments, number
from convcore.functions.elementwise.arithmetic import mul
from convcore.functions.elementwise.piecewise import masked
from convcore.functions.shapes.shape import reshape

__all__ = ["embedding"]


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Look up embeddings: return the rows of a matrix at the given indices.

    Parameters
    ----------
    input : Tensor of int64 or int32, any shape
        Numbers of rows, from 0.
    weight : (num_embeddings, embedding_dim)
    padding_idx : int, optional
        A row that gets no gradient; a negative one counts from the end.
    max_norm : float, optional
        Rows that are looked up and whose norm is larger are scaled down to it, in ``weight``.
    norm_type : float
        The p of that norm.
    scale_grad_by_freq : bool
        Divide a row's gradient by how often the row was looked up.
    sparse : bool
        Must be False: gradients are dense.

    Returns
    -------
    (*input.shape, embedding_dim)

    Raises
    ------
    IndexError
        There is no such row.
    RuntimeError
        ``weight`` is no matrix, or ``input`` is not of integers.
    NotImplementedError
        ``sparse`` is True.

    Notes
    -----
    What goes to one row of the gradient is summed in the order of ``input``, on one thread.
    """
    check_arguments("embedding", weight=weight, indices=input)
    refuse_sparse(sparse)
    if weight._array.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    _check_integers("embedding", input)
    size = weight._array.shape[0]
    if padding_idx is not None:
        padding_idx = padding_row(padding_idx, size)
    rows = input._array.reshape(-1)
    if rows.size and not 0 <= rows.min() <= rows.max() < size:
        outside = rows[(rows < 0) | (rows >= size)]
        raise hinted(
            IndexError("index out of range in self"),
            hints.INDEX_RANGE.format(int(outside[0]), size - 1),
        )
    if max_norm is not None:
        _renorm(weight, rows, max_norm, norm_type)
    return _looked_up(weight, input, padding_idx, scale_grad_by_freq)


def refuse_sparse(sparse: bool) -> None:
    """Raise where gradients are to be sparse tensors."""
    if sparse:
        raise NotImplementedError(
            "embedding(): sparse=True is not supported, gradients are dense; use sparse=False"
        )


def padding_row(padding_idx: int, size: int) -> int:
    """Return the row that gets no gradient, counted from the beginning."""
    if not -size <= padding_idx < max(size, 1):
        raise AssertionError("Padding_idx must be within num_embeddings")
    return padding_idx + size if padding_idx < 0 else padding_idx


def _check_integers(function: str, indices: Tensor) -> None:
    if indices._array.dtype not in (np.int64, np.int32):
        raise hinted(
            RuntimeError(
                "Expected tensor for argument #1 'indices' to have one of the following scalar "
                f"types: Long, Int; but got {legacy_name(indices._array.dtype)} instead (while "
                f"checking arguments for {function})"
            ),
            hints.INTEGERS,
        )


def _renorm(weight: Tensor, rows: np.ndarray, max_norm: Any, norm_type: Any) -> None:
    """Scale the rows that are looked up down to a norm, in place and without a gradient."""
    limit = number("embedding", "max_norm", max_norm)
    power = number("embedding", "norm_type", norm_type)
    with no_grad():
        write(weight, partial(_scale_down, np.unique(rows), limit, power), "", (), _scale_down)


def _scale_down(rows: np.ndarray, limit: float, power: float, array: np.ndarray) -> None:
    norms = np.linalg.norm(array[rows], power, axis=1)
    large = norms > limit
    # PyTorch's 1e-7, which keeps the scaled norm from rounding to more than the limit.
    scale = limit / (norms[large] + 1e-7)
    array[rows[large]] *= scale.astype(array.dtype)[:, np.newaxis]


# Looking up rows, and its adjoint: sums of the rows that have the same number


def _looked_up(
    weight: Tensor, index: Tensor, padding: int | None = None, by_frequency: bool = False
) -> Tensor:
    """Return ``weight[index]``; padding and frequencies change the gradient alone."""
    out = wrap(weight._array.take(index._array, 0))
    size, columns = weight._array.shape

    def backward(needs: tuple[bool, ...], grad: Tensor, index: Tensor) -> Tensor:
        rows = reshape(index, -1)
        grad = reshape(grad, (rows._array.size, columns))
        if padding is not None:  # NaN counts for nothing too
            grad = masked(grad, (rows._array != padding)[:, np.newaxis])
        if by_frequency:
            grad = mul(grad, _gradient_share(rows._array, grad._array.dtype))
        return row_sums(grad, rows, size)

    record("EmbeddingBackward0", (weight,), out, backward, (index,))
    return out


def _gradient_share(rows: np.ndarray, dtype: np.dtype) -> Tensor:
    """Return the factor of each row's gradient: one over how often it was looked up."""
    share = np.ones(rows.shape, dtype)
    if rows.size:
        share /= np.bincount(rows)[rows].astype(dtype)
    return wrap(share[:, np.newaxis])


def row_sums(values: Tensor, rows: Tensor, size: int) -> Tensor:
    """Return a matrix of ``size`` rows, each the sum of the values that have its index."""
    out = wrap(_row_sums(values._array, rows._array, size))
    record(
        "EmbeddingDenseBackwardBackward0",
        (values,),
        out,
        lambda needs, grad, rows: _looked_up(grad, rows),
        (rows,),
    )
    return out


def _row_sums(values: np.ndarray, rows: np.ndarray, size: int) -> np.ndarray:
    """Sum by a sparse matrix of ones, in order; np.add.at takes far longer."""
    if not rows.size:
        return np.zeros((size, values.shape[1]), values.dtype)
    from scipy.sparse import csr_matrix  # slow to import

    wide = np.float32 if values.itemsize == 2 else values.dtype
    order = np.argsort(rows, kind="stable")
    ends = np.cumsum(np.bincount(rows, minlength=size))
    ones = np.ones(len(rows), wide)
    matrix = csr_matrix((ones, order, np.concatenate(([0], ends))), shape=(size, len(rows)))
    return np.asarray(matrix * values.astype(wide, copy=False), values.dtype)
