"""Products of matrices and vectors through the package's own gemm.

NumPy's matmul has a thread pool of its own: it ignores `set_num_threads`, and under some BLAS
kernels its bits change with its thread count.  Here C is cut into tiles that depend on shape alone.
"""

from __future__ import annotations

import numpy as np

from convcore.engine.matmul_bfloat16 import allowed, matmul_bfloat16
from convcore.engine.runtime import memory
from convcore.engine.runtime.checks import Array, checked_array, whole_elements
from convcore.kernels.runtime._matmul import matmul as _matmul

# Sides of a tile of C: wide enough for gemm's own blocking, small enough to keep two cores busy on
# a 512 x 512 product.
_TILE = 256


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
    lead = _lead(a, b)
    m, k, n = *a.shape[-2:], b.shape[-1]
    c = memory.empty((*lead, m, n), a.dtype)
    if c.size == 0:
        return c
    if k == 0:
        c[...] = 0
        return c
    a, trans_a, lda = _operand(a)
    b, trans_b, ldb = _operand(b)
    if lead:
        offsets = np.stack([_offsets(a, lead), _offsets(b, lead)], axis=-1)
    else:
        offsets = _ORIGINS
    fields = {
        "batch": len(offsets),
        "m": m,
        "n": n,
        "k": k,
        "trans_a": trans_a,
        "trans_b": trans_b,
        "lda": lda,
        "ldb": ldb,
        "tile_m": min(m, _TILE),
        "tile_n": min(n, _TILE),
    }
    _matmul(a.dtype.char, fields, a, b, c, offsets)
    return c


# Where the operands of a single product begin: making it anew costs more than a small product.
_ORIGINS = np.zeros((1, 2), np.int64)


def _lead(a: Array, b: Array) -> tuple[int, ...]:
    """Return what the leading axes broadcast to."""
    if a.ndim == b.ndim == 2:
        return ()
    try:
        return np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise ValueError(
            "the leading axes of a and b must broadcast, "
            f"got shapes {list(a.shape)} and {list(b.shape)}"
        ) from None


def _operand(array: Array) -> tuple[Array, bool, int]:
    """Return (array or copy, stored transposed, elements from one stored row to the next)."""
    for transposed in (False, True):
        rows, row = array.shape[-2:] if not transposed else array.shape[:-3:-1]
        down, along = array.strides[-2:] if not transposed else array.strides[:-3:-1]
        if rows == 1:
            down = row * array.itemsize
        if row == 1:
            along = array.itemsize
        if along == array.itemsize and down >= row * array.itemsize:
            return array, transposed, down // array.itemsize
    return _operand(array.copy(order="C"))


def _offsets(array: Array, lead: tuple[int, ...]) -> np.ndarray:
    """Return the offset of each product's operand, in elements, in the order of the result."""
    offsets = np.zeros((1,) * len(lead), np.int64)
    missing = len(lead) - (array.ndim - 2)
    for axis in range(array.ndim - 2):
        steps = np.arange(array.shape[axis]) * (array.strides[axis] // array.itemsize)
        shape = [1] * len(lead)
        shape[missing + axis] = -1
        offsets = offsets + steps.reshape(shape)
    return np.ascontiguousarray(np.broadcast_to(offsets, lead)).reshape(-1)
