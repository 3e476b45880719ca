"""Products of matrices and vectors through the package's own gemm.

NumPy's matmul has a thread pool of its own: it ignores `set_num_threads`, and under some BLAS
kernels its bits change with its thread count.  Here C is cut into tiles that depend on shape alone.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from convcore.engine.matmul_bfloat16 import allowed, matmul_bfloat16
from convcore.engine.runtime import memory
from convcore.engine.runtime._matmul import MatmulKernel
from convcore.engine.runtime.checks import Array, checked_array, whole_elements

# Sides of a tile of C: wide enough for gemm's own blocking, small enough to keep two cores busy on
# a 512 x 512 product.
_TILE = 256

# Rows of float32 products that read b as it lies, by whether it is stored transposed, and from how
# many multiply-adds on: what is smaller, or has fewer rows, BLAS does not copy either. Ratios of
# times: python benchmarks/layer_peers.py --calls linear, with other numbers here.
_FEW_ROWS = {True: range(5, 13), False: range(3, 33)}
_FEW_ROWS_WORK = 1 << 20

# Products whose `_offsets` are kept, 16 bytes each: with 256 shapes, 16 MiB in all.
_MOST_KEPT = 4096


def matmul(a: Array, b: Array) -> Array:
    """Return the matrix product of two arrays.

    c[..., i, j] = sum over k of a[..., i, k] * b[..., k, j].

    Parameters
    ----------
    a : (..., m, k) or (k,); float32, float64, complex64 or complex128
    b : (..., k, n) or (k,), the same dtype
        Leading axes broadcast; any strides.  A vector is a matrix of one row (a) or column (b),
        whose axis the result drops.

    Returns
    -------
    (..., m, n), without m or n where a or b is a vector
        A new contiguous array; of two vectors a 0-d one.

    Raises
    ------
    TypeError
        An argument is no array of those dtypes, or the dtypes differ.
    ValueError
        A 0-d argument, or sizes that do not fit.

    Notes
    -----
    m * n * k multiply-adds a product.  Parallel over tiles of the result; the bits do not depend on
    the number of threads.  An operand of which neither axis is contiguous is copied.

    Examples
    --------
    >>> import numpy as np
    >>> matmul(np.arange(4.0).reshape(2, 2), np.ones(2))
    array([1., 5.])
    """
    a, b = whole_elements(checked_array("a", a)), whole_elements(checked_array("b", b))
    if a.dtype != b.dtype:
        raise TypeError(f"a and b should be the same dtype, got {a.dtype.name} and {b.dtype.name}")
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError(
            f"a and b must have at least one axis, got shapes {list(a.shape)} and {list(b.shape)}"
        )
    left = a[np.newaxis, :] if a.ndim == 1 else a
    right = b[:, np.newaxis] if b.ndim == 1 else b
    if left.shape[-1] != right.shape[-2]:
        raise ValueError(
            "a and b must agree in the axis that is summed, the last of a and the last but one of "
            f"b, got shapes {list(a.shape)} and {list(b.shape)}"
        )
    c = _multiply(left, right)
    if a.ndim == 1:
        c = c[..., 0, :]
    if b.ndim == 1:
        c = c[..., 0]
    return c


def _multiply(a: Array, b: Array) -> Array:
    """Return the broadcast product of arrays with two axes or more."""
    if a.ndim == b.ndim == 2 and a.dtype == np.float32 and allowed():
        product = matmul_bfloat16(a, b)
        if product is not None:
            return product
    layout = a.dtype, a.shape, a.strides, b.shape, b.strides
    shape, kernel, offsets = _kernel(*layout)
    nothing_to_add = 0 in (*shape, a.shape[-1])
    if kernel is None and not nothing_to_add:
        return _multiply(_with_rows(a), _with_rows(b))
    c = memory.empty(shape, a.dtype)
    if kernel is not None:
        kernel.run(a, b, c, _offsets(*layout, shape[:-2]) if offsets is None else offsets)
    else:
        c[...] = 0
    return c


@functools.lru_cache(maxsize=256)
def _kernel(
    dtype: np.dtype[Any],
    a_shape: tuple[int, ...],
    a_strides: tuple[int, ...],
    b_shape: tuple[int, ...],
    b_strides: tuple[int, ...],
) -> tuple[tuple[int, ...], MatmulKernel | None, np.ndarray | None]:
    """Return the product's shape, its kernel and its `_offsets`.

    There is no kernel where operands have to be copied first, and no table of offsets where it is
    not worth its memory.
    """
    lead = _lead(a_shape, b_shape)
    m, k, n = *a_shape[-2:], b_shape[-1]
    shape = (*lead, m, n)
    left, right = _stored(a_shape, a_strides, dtype), _stored(b_shape, b_strides, dtype)
    if not math.prod((*shape, k)) or left is None or right is None:
        return shape, None, None
    (trans_a, lda), (trans_b, ldb) = left, right
    fields = {
        "batch": math.prod(lead),
        "m": m,
        "n": n,
        "k": k,
        "trans_a": trans_a,
        "trans_b": trans_b,
        "few_rows": (
            dtype == np.float32
            and m in _FEW_ROWS[trans_b]
            and m * n * k >= _FEW_ROWS_WORK
            and not (trans_a and trans_b)
        ),
        "lda": lda,
        "ldb": ldb,
        "tile_m": min(m, _TILE),
        "tile_n": min(n, _TILE),
    }
    few = math.prod(lead) <= _MOST_KEPT
    offsets = _offsets(dtype, a_shape, a_strides, b_shape, b_strides, lead) if few else None
    return shape, MatmulKernel(dtype.char, fields), offsets


def _lead(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """Return what the leading axes of two shapes broadcast to."""
    try:
        return np.broadcast_shapes(a[:-2], b[:-2])
    except ValueError:
        raise ValueError(
            f"the leading axes of a and b must broadcast, got shapes {list(a)} and {list(b)}"
        ) from None


def _stored(
    shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any]
) -> tuple[bool, int] | None:
    """Return (stored transposed, elements from one stored row to the next); None if neither is."""
    size = dtype.itemsize
    for transposed in (False, True):
        rows, row = shape[-2:] if not transposed else shape[:-3:-1]
        down, along = strides[-2:] if not transposed else strides[:-3:-1]
        if rows == 1:
            down = row * size
        if row == 1:
            along = size
        if along == size and down >= row * size:
            return transposed, down // size
    return None


def _with_rows(array: Array) -> Array:
    """Return the array, or a copy where neither its rows nor its columns are contiguous."""
    fits = _stored(array.shape, array.strides, array.dtype) is not None
    return array if fits else array.copy(order="C")


def _offsets(
    dtype: np.dtype[Any],
    a_shape: tuple[int, ...],
    a_strides: tuple[int, ...],
    b_shape: tuple[int, ...],
    b_strides: tuple[int, ...],
    lead: tuple[int, ...],
) -> np.ndarray:
    """Return where each product's operands begin, (products, 2), in elements."""
    operands = (a_shape, a_strides), (b_shape, b_strides)
    return np.stack([_starts(*one, lead) // dtype.itemsize for one in operands], axis=-1)


def _starts(shape: tuple[int, ...], strides: tuple[int, ...], lead: tuple[int, ...]) -> np.ndarray:
    """Return where an operand of each product begins, in bytes, in the order of the result."""
    starts = np.zeros((1,) * len(lead), np.int64)
    missing = len(lead) - (len(shape) - 2)
    for axis, (count, stride) in enumerate(zip(shape[:-2], strides[:-2], strict=True)):
        one = [1] * len(lead)
        one[missing + axis] = -1
        starts = starts + (np.arange(count) * stride).reshape(one)
    return np.broadcast_to(starts, lead).reshape(-1)
