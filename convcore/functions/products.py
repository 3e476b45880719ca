"""Products and arrangements of vectors and matrices: kron, cross, vander, block_diag, cov ..."""

from __future__ import annotations

import itertools
import math
import warnings
from typing import Any

import numpy as np

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, wrap
from convcore._tensor.creation.arguments import checked_int, counted, factor
from convcore._tensor.dtypes import get_default_dtype, result_numpy
from convcore.autograd.views import own
from convcore.engine.integers import as_int
from convcore.functions._support.arguments import check_arguments, check_tensor
from convcore.functions._support.axes import wrap_dim
from convcore.functions._support.in_place import in_place_methods
from convcore.functions.arithmetic import add, checked_scale, conj, div, mul, sub
from convcore.functions.broadcast import broadcast_tensors
from convcore.functions.complex_parts import imag, real
from convcore.functions.convert import clone
from convcore.functions.elementwise import pow, sqrt
from convcore.functions.index_along import index_select
from convcore.functions.joining import _checked, cat, meshgrid, stack
from convcore.functions.matmul import bmm, matmul, outer
from convcore.functions.piecewise import clamp
from convcore.functions.rearrange import roll
from convcore.functions.reduce import sum
from convcore.functions.shape import reshape, t, unsqueeze
from convcore.functions.slicing import diag_embed, diagonal

__all__ = [
    "addbmm",
    "addr",
    "block_diag",
    "cartesian_prod",
    "combinations",
    "corrcoef",
    "cov",
    "cross",
    "diagflat",
    "kron",
    "vander",
]


def kron(input: Tensor, other: Tensor) -> Tensor:
    """Return the Kronecker product: each element of ``input`` times all of ``other``."""
    check_arguments("kron", input=input, other=other)
    a, b = input._array.shape, other._array.shape
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    left = reshape(input, [n for size in a for n in (size, 1)])
    right = reshape(other, [n for size in b for n in (1, size)])
    return own(reshape(mul(left, right), [m * n for m, n in zip(a, b, strict=True)]))


def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """Return the vector product of vectors of three elements along an axis.

    Parameters
    ----------
    input, other : Tensors with as many axes, which broadcast
    dim : int, or None for the first axis of size 3

    Raises
    ------
    RuntimeError
        An axis is not of size 3, or the tensors differ in their number of axes.
    """
    check_arguments("cross", input=input, other=other)
    if dim is None:
        dim = next((axis for axis, size in enumerate(input._array.shape) if size == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    a, b = input._array, other._array
    if a.ndim != b.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    along = wrap_dim(dim, a.ndim)
    sizes = [one.shape[along] if one.ndim else 1 for one in (a, b)]
    if sizes != [3, 3]:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {sizes[0]} and "
            f"{sizes[1]}"
        )
    x, y = broadcast_tensors(input, other)
    first = mul(roll(x, -1, along), roll(y, -2, along))
    return sub(first, mul(roll(x, -2, along), roll(y, -1, along)))


@names_arguments
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Return the Vandermonde matrix: powers of a vector, from N - 1 down to 0, as columns."""
    check_tensor("vander", x)
    if x._array.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    N = x._array.size if N is None else as_int(N)
    if N < 0:
        raise RuntimeError("N must be non-negative.")
    powers = counted(N)
    return pow(unsqueeze(x, -1), wrap(powers if increasing else powers[::-1].copy()))


def block_diag(*tensors: Any) -> Tensor:
    """Return the matrix with the given matrices along its diagonal; vectors are rows."""
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors
    blocks = []
    for place, x in enumerate(given):
        check_tensor("block_diag", x)
        if x._array.ndim > 2:
            raise RuntimeError(
                "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input "
                f"{place} has {x._array.ndim} dimensions"
            )
        blocks.append(reshape(x, (1,) * (2 - x._array.ndim) + x._array.shape))
    if not blocks:
        return wrap(np.empty((1, 0), get_default_dtype().numpy))
    width = int(np.sum([x._array.shape[1] for x in blocks]))
    dtype = blocks[0]._array.dtype
    rows, start = [], 0
    for x in blocks:
        height, size = x._array.shape
        gaps = [wrap(np.zeros((height, n), dtype)) for n in (start, width - start - size)]
        rows.append(cat([gaps[0], x, gaps[1]], 1))
        start += size
    return cat(rows, 0)


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Return all combinations of the vectors' elements, one a row, as itertools.product does."""
    grids = meshgrid(_checked(tensors, "cartesian_prod"), indexing="ij")
    lines = [reshape(grid, -1) for grid in grids]
    return lines[0] if len(lines) == 1 else stack(lines, 1)


# Numbers in a result of combinations(): 64 GiB.
_MOST_COMBINED = 2**33


@names_arguments
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Return all combinations of r elements of a vector, one a row, as itertools does."""
    check_tensor("combinations", input)
    if input._array.ndim != 1:
        raise RuntimeError("Expect a 1D vector, but got shape " + str(list(input._array.shape)))
    r = as_int(r)
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    size = input._array.size
    if r == 0:
        return wrap(np.empty(0, input._array.dtype))
    # The number's logarithm, for it may have more digits than there is time for.
    n = size + r - 1 if with_replacement else size
    rows = math.lgamma(n + 1) - math.lgamma(r + 1) - math.lgamma(max(n - r, 0) + 1)
    if r > _MOST_COMBINED or (size >= 1 and rows + math.log(r) > math.log(_MOST_COMBINED)):
        raise RuntimeError(f"combinations(): r={r} of {size} elements are too many to return")
    chosen = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = np.array(list(chosen(range(size), r)), np.int64).reshape(-1, r)
    return reshape(index_select(input, 0, wrap(places.reshape(-1))), places.shape)


@names_arguments
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """Return the matrix with all elements along a diagonal."""
    check_tensor("diagflat", input)
    return diag_embed(reshape(input, -1), offset)


# Covariances


def cov(
    input: Tensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """Return the covariance matrix of variables, the rows, over observations, the columns.

    Parameters
    ----------
    input : (variables, observations), or a vector
    correction : int
        What is subtracted from the number of observations.
    fweights, aweights : vectors or None
        How often each observation counts, and how much.
    """
    check_tensor("cov", input)
    if input._array.ndim > 2:
        raise RuntimeError(
            "cov(): expected input to have two or fewer dimensions but got an input with "
            f"{input._array.ndim} dimensions"
        )
    x = input if input._array.ndim == 2 else reshape(input, 1, -1)
    weights = _weights(fweights, aweights)
    number = wrap(np.asarray(x._array.shape[1]))  # not of x's dtype: bytes have no 256
    weight: Any = 1 if weights is None else weights
    total = number if weights is None else sum(weights)
    middle = div(sum(mul(x, weight), 1, True), total)
    correction = checked_int("cov", "correction", correction)
    norm = sub(total, correction)
    if weights is not None and aweights is not None:
        norm = sub(total, div(mul(sum(mul(weights, aweights)), correction), total))
    if norm._array <= 0:
        warnings.warn(
            "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number "
            "of observations.",
            stacklevel=2,
        )
        norm = wrap(np.zeros_like(norm._array))
    away = sub(x, middle)
    found = div(matmul(away, t(conj(mul(away, weight)))), norm)
    return found if found._array.size != 1 else reshape(found, ())


def _weights(fweights: Tensor | None, aweights: Tensor | None) -> Tensor | None:
    if fweights is None or aweights is None:
        return aweights if fweights is None else fweights
    return mul(fweights, aweights)


def corrcoef(input: Tensor) -> Tensor:
    """Return the correlation coefficients of variables, the rows: `cov` over deviations."""
    found = cov(input)
    if not found._array.ndim:
        return div(found, found)
    deviation = sqrt(real(diagonal(found)))
    found = div(div(found, unsqueeze(deviation, 1)), unsqueeze(deviation, 0))
    if found._array.dtype.kind != "c":
        return clamp(found, -1, 1)
    return add(clamp(real(found), -1, 1), mul(clamp(imag(found), -1, 1), 1j))


# Products that are added


@names_arguments
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return beta * input + alpha * the outer product of two vectors."""
    check_arguments("addr", input=input, vec1=vec1, vec2=vec2)
    product = outer(vec1, vec2)
    dtype = result_numpy(input._array, product._array)
    beta, alpha = (
        checked_scale("addr", name, value, dtype)
        for name, value in (("beta", beta), ("alpha", alpha))
    )
    return _added(input, product, beta, alpha)


@names_arguments
def addbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1
) -> Tensor:
    """Return beta * input + alpha * the sum of the products of two batches of matrices."""
    check_arguments("addbmm", input=input, batch1=batch1, batch2=batch2)
    product = sum(bmm(batch1, batch2), 0)
    dtype = product._array.dtype
    beta, alpha = factor("addbmm", "beta", beta, dtype), factor("addbmm", "alpha", alpha, dtype)
    return _added(input, product, beta, alpha)


def _added(x: Tensor, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    product = product if alpha == 1 else mul(product, alpha)
    if beta == 0:
        return clone(product)
    return add(x if beta == 1 else mul(x, beta), product)


FUNCTIONS_ONLY = {"block_diag", "cartesian_prod", "combinations", "vander"}
METHODS = in_place_methods(addbmm, addr)
