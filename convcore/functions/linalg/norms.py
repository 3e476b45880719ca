"""Norms of vectors and matrices, condition numbers and ranks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, scalar_name
from convcore._tensor.dtypes import INEXACT, as_numpy
from convcore.functions._support.arguments import check_arguments, number
from convcore.functions._support.axes import axes
from convcore.functions.elementwise.elementwise import abs
from convcore.functions.indexing.order import amax, amin
from convcore.functions.linalg.spectral import svdvals
from convcore.functions.reductions import reduce
from convcore.functions.shapes.broadcast import cast
from convcore.functions.shapes.shape import movedim, unsqueeze

__all__ = ["matrix_norm", "norm", "vector_norm"]


@names_arguments
def vector_norm(
    x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """Return the norm (sum of |x|^ord)^(1/ord) of all elements, or over some axes.

    Parameters
    ----------
    x : Tensor of a floating-point or complex dtype
    ord : number, inf or -inf
        0 counts what is not 0.
    dim : int, tuple of ints, or None for all axes
    keepdim : bool
    dtype : dtype or None
        The elements are converted to it first.

    Raises
    ------
    RuntimeError
        The tensor is empty and ``ord`` is infinite or negative.
    """
    check_arguments("linalg_vector_norm", x=x)
    if isinstance(ord, str):
        raise TypeError("linalg_vector_norm(): argument 'ord' (position 2) must be Number, not str")
    ord = number("linalg_vector_norm", "ord", ord)
    over = axes(dim, x._array.ndim)
    if (ord < 0 or math.isinf(ord)) and 0 in [x._array.shape[axis] for axis in over]:
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {ord:g} norm on an empty tensor because the "
            "operation does not have an identity"
        )
    return reduce.norm(x, ord, dim, keepdim, dtype)


def matrix_norm(
    A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """Return a norm of each matrix.

    Parameters
    ----------
    A : (..., m, n)
    ord : 'fro', 'nuc', inf, -inf, 1, -1, 2 or -2
        Frobenius; the sum of singular values; the largest (smallest) row sum, column sum, or
        singular value.
    dim : pair of ints
        The axes of the rows and columns.
    keepdim : bool
    dtype : dtype or None
        The elements are converted to it first.
    """
    check_arguments("linalg_matrix_norm", A=A)
    if A._array.ndim < 2:
        raise RuntimeError(
            "linalg.matrix_norm: The input tensor A must have at least 2 dimensions."
        )
    if A._array.dtype.kind not in INEXACT:
        raise RuntimeError(
            "linalg.matrix_norm: Expected a floating point or complex tensor as input. Got "
            f"{scalar_name(A._array.dtype)}"
        )
    if not isinstance(dim, tuple | list) or len(dim) != 2:
        shown = dim if not isinstance(dim, tuple | list) else list(dim)
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {shown}")
    rank = A._array.ndim
    rows, columns = (axes(one, rank)[0] for one in dim)
    if rows == columns:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    if dtype is not None:
        A = cast(A, as_numpy(dtype))
    if ord == "fro":
        return reduce.norm(A, 2, (rows, columns), keepdim)
    if not isinstance(ord, str):
        ord = number("linalg_matrix_norm", "ord", ord)
    if ord not in ("nuc", math.inf, -math.inf, 1, -1, 2, -2):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if ord in ("nuc", 2, -2):
        out = _of_values(svdvals(movedim(A, (rows, columns), (-2, -1))), ord)
    else:
        summed, taken = (rows, columns) if ord in (1, -1) else (columns, rows)
        sums = reduce.sum(abs(A), summed, True)
        out = _extreme(ord)(sums, taken, True)
        return out if keepdim else out.squeeze((rows, columns))
    for axis in sorted((rows, columns)) if keepdim else ():
        out = unsqueeze(out, axis)
    return out


def _extreme(ord: float) -> Callable:
    return amax if ord > 0 else amin


def _of_values(values: Tensor, ord: Any) -> Tensor:
    return reduce.sum(values, -1) if ord == "nuc" else _extreme(ord)(values, -1)


@names_arguments
def norm(
    A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """Return a vector's or a matrix' norm.

    Parameters
    ----------
    A : Tensor
    ord : None, or as in `vector_norm` or `matrix_norm`
        None is the square root of the sum of squares, whatever the number of axes.
    dim : int for vectors, a pair for matrices, or None
    keepdim : bool
    dtype : dtype or None
        The elements are converted to it first.
    """
    check_arguments("linalg_norm", A=A)
    rank = A._array.ndim
    if dim is not None:
        given = dim if isinstance(dim, tuple | list) else (dim,)
        if len(given) not in (1, 2):
            raise RuntimeError(
                f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(given)}"
            )
    elif ord is not None:
        if rank not in (1, 2):
            raise RuntimeError(
                "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got "
                f"{rank}D."
            )
        given = tuple(range(rank))
    else:
        given = ()
    if ord is not None and (len(given) == 2 or isinstance(ord, str)):
        pair = tuple(given) if len(given) == 2 else given[0]
        return matrix_norm(A, ord, pair, keepdim, dtype=dtype)
    return vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype)
