"""Embeddings: rows of a matrix looked up by their numbers, and sums, means and maxima of them."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from convcore._errors import hinted, hints
from convcore._tensor import Tensor, legacy_name, wrap
from convcore.autograd.grad_mode import no_grad
from convcore.autograd.node import record
from convcore.autograd.views import write
from convcore.functions._support.arguments import check_arguments, check_optional, number
from convcore.functions.arithmetic import div, mul
from convcore.functions.index_along import index_select
from convcore.functions.piecewise import masked
from convcore.functions.scatter import gather
from convcore.functions.shape import reshape, unsqueeze
from convcore.functions.slicing import slice_of

__all__ = ["embedding", "embedding_bag"]


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


def padding_row(padding_idx: int, size: int, name: str = "Padding_idx") -> int:
    """Return the row that gets no gradient, counted from the beginning."""
    if not -size <= padding_idx < max(size, 1):
        raise AssertionError(f"{name} must be within num_embeddings")
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


# Bags


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Look up bags of embeddings: return the sum, mean or maximum of each bag of a matrix's rows.

    Parameters
    ----------
    input : Tensor of int64 or int32
        (B, n), a bag a row, or (n,), all bags one after the other.
    weight : (num_embeddings, embedding_dim)
    offsets : (B,), optional
        Where each bag of a 1-d ``input`` starts.
    mode : 'sum', 'mean' or 'max'
        Of an empty bag, each is zeros.
    per_sample_weights : like ``input``, optional
        A factor of each row; only for 'sum'.
    include_last_offset : bool
        Whether ``offsets`` has one element more than there are bags.  Its value has no effect: the
        last bag always reaches to the end of ``input``.
    padding_idx : int, optional
        A row that counts for nothing.
    max_norm, norm_type, scale_grad_by_freq, sparse
        As for `embedding`.

    Returns
    -------
    (B, embedding_dim)

    Raises
    ------
    ValueError
        Shapes or a mode that do not fit.
    RuntimeError
        A row that is not there, or offsets that do not go up from 0.
    NotImplementedError
        Weights in another mode than 'sum', or ``sparse`` is True.
    """
    check_arguments("embedding_bag", weight=weight, indices=input)
    check_optional("embedding_bag", offsets=offsets, per_sample_weights=per_sample_weights)
    _check_bags(input, weight, offsets, mode, scale_grad_by_freq, per_sample_weights)
    refuse_sparse(sparse)
    rows = reshape(input, -1)  # of the version of input, which the gradient is for
    plain = mode != "max" and padding_idx is None and weight._array.dtype != np.float64
    _check_rows(rows._array, weight._array.shape[0], plain)
    sizes = _bag_sizes(input._array, offsets, include_last_offset)
    if max_norm is not None:
        _renorm(weight, rows._array, max_norm, norm_type)
    count = int(sizes.sum())
    rows = slice_of(rows, 0, 0, count)
    bags = np.repeat(np.arange(len(sizes)), sizes)
    factors = None
    if per_sample_weights is not None:
        factors = slice_of(reshape(per_sample_weights, -1), 0, 0, count)
    if padding_idx is not None:
        padding = _bag_padding(padding_idx, weight._array.shape[0])
        kept = np.flatnonzero(rows._array != padding)
        rows, bags = wrap(rows._array[kept]), bags[kept]
        factors = None if factors is None else index_select(factors, 0, wrap(kept))
    found = _looked_up(weight, rows, None, scale_grad_by_freq)
    if mode == "max":
        return _maxima(found, bags, len(sizes))
    if factors is not None:
        found = mul(found, unsqueeze(factors, -1))
    sums = row_sums(found, wrap(bags), len(sizes))
    if mode == "sum":
        return sums
    counts = np.maximum(np.bincount(bags, minlength=len(sizes)), 1)
    return div(sums, wrap(counts.astype(sums._array.dtype)[:, np.newaxis]))


def _check_bags(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None,
    mode: str,
    by_frequency: bool,
    factors: Tensor | None,
) -> None:
    """Raise unless the arguments fit together."""
    if factors is not None and factors.shape != input.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({factors.shape}) is not None, then it must "
            f"have the same shape as the input ({input.shape})"
        )
    if weight._array.ndim != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.ndim}")
    if input.ndim == 2 and offsets is not None:
        raise ValueError(
            "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of "
            f"fixed length sequences. However, found offsets of type {type(offsets)}"
        )
    if input.ndim == 1 and (offsets is None or offsets.ndim != 1):
        got = " but got None" if offsets is None else ""
        raise ValueError(f"offsets has to be a 1D Tensor{got}")
    if input.ndim not in (1, 2):
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}"
        )
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and by_frequency:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if factors is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported "
            f"for mode='sum' (got mode='{mode}'). Please open a feature request on GitHub."
        )
    _check_integers("embedding_bag", input)
    if factors is not None and factors._array.dtype != weight._array.dtype:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for argument "
            f"#1 'per_sample_weights'; but type {legacy_name(weight._array.dtype)} does not equal "
            f"{legacy_name(factors._array.dtype)} (while checking arguments for embedding_bag)"
        )


def _check_rows(rows: np.ndarray, size: int, plain: bool) -> None:
    """Raise if a row is not there, with PyTorch's text for plain sums, or else for the others."""
    outside = np.flatnonzero((rows < 0) | (rows >= size))
    if outside.size:
        found = rows[outside[0]]
        raise RuntimeError(
            f"Index {outside[0]} of input takes value {found} which is not in the valid range "
            f"[0, {size})"
            if plain
            else "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be "
            f"{found}"
        )


def _bag_padding(padding: int, size: int) -> int:
    if not -size <= padding < size:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, {-size} through {size - 1}, but "
            f"got {padding}"
        )
    return padding % size


def _bag_sizes(numbers: np.ndarray, offsets: Tensor | None, with_end: bool) -> np.ndarray:
    """Return how many rows each bag has."""
    if offsets is None:
        return np.full(numbers.shape[0], math.prod(numbers.shape[1:]))
    starts = offsets._array
    if with_end and not starts.size:
        raise RuntimeError("include_last_offset: number of offset should be at least 1")
    if starts.size and starts[0]:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from "
            f"position 0. However, got {starts[0]}"
        )
    if starts.size and starts[-1] > len(numbers):
        raise RuntimeError(
            "offsets[-1] can not be greater than input's length "
            f"{len(numbers)} but got offsets[-1] of {starts[-1]}"
        )
    sizes = np.diff(starts[:-1] if with_end else starts, append=len(numbers))
    if (sizes < 0).any():
        raise RuntimeError(f"offsets must not fall, but got {starts.tolist()}")
    return sizes


def _maxima(rows: Tensor, bags: np.ndarray, size: int) -> Tensor:
    """Return the maximum of each bag's rows; of equal ones, the first gets the gradient."""
    array = rows._array
    if not len(bags):
        return row_sums(rows, wrap(bags), size)
    starts = np.flatnonzero(np.diff(bags, prepend=-1))
    largest = np.repeat(np.maximum.reduceat(array, starts), np.diff(starts, append=len(bags)), 0)
    here = (array == largest) | np.isnan(array)
    places = np.where(here, np.arange(len(bags))[:, np.newaxis], len(bags))
    found = gather(rows, 0, wrap(np.minimum.reduceat(places, starts)))
    return row_sums(found, wrap(bags[starts]), size)
