"""Distances and angles of vectors: cosine similarity, cdist, pdist, L_p normalisation, renorm."""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, dtypes, scalar_name, wrap
from convcore.autograd.grad_mode import no_grad
from convcore.autograd.node import record
from convcore.functions._support.arguments import (
    check_arguments,
    check_tensor,
    number,
    refuse_complex,
)
from convcore.functions._support.axes import wrap_dim
from convcore.functions._support.in_place import in_place_methods
from convcore.functions._support.out import with_out
from convcore.functions.elementwise.arithmetic import add, div, mul, sub
from convcore.functions.elementwise.elementwise import reciprocal, square
from convcore.functions.elementwise.in_float32 import in_float32
from convcore.functions.elementwise.piecewise import clamp_min, masked, where
from convcore.functions.products.matmul import matmul
from convcore.functions.reductions.reduce import norm, sum
from convcore.functions.shapes.broadcast import broadcast_tensors, expand_as, fitted
from convcore.functions.shapes.shape import transpose, unsqueeze

__all__ = ["cdist", "cosine_similarity", "dist", "normalize", "pairwise_distance", "renorm"]


@names_arguments
def normalize(
    input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """Return the tensor over its norm along some axes, or over ``eps`` where that is larger.

    The result is written into ``out``, if it is given.
    """
    check_tensor("normalize", input)
    size = clamp_min(norm(input, p, dim, True), eps)
    if out is not None:
        return with_out("div", div)(input, expand_as(size, input), out=out)
    return div(input, expand_as(size, input))


@in_float32
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Return the cosine of the angle between vectors that lie along an axis.

    Parameters
    ----------
    x1, x2 : Tensors that broadcast
    dim : int
    eps : number
        Shorter vectors count as having this length, but in the gradient, as in PyTorch.
    """
    check_arguments("cosine_similarity", x1=x1, x2=x2)
    dtype = dtypes.promote_types(x1.dtype, x2.dtype).numpy
    if dtype.kind not in dtypes.INEXACT or dtype.kind == "c":
        raise RuntimeError(
            f"expected common dtype to be floating point, yet common dtype is {scalar_name(dtype)}"
        )
    x1, x2 = (
        x if x._array.dtype.kind in dtypes.INEXACT else wrap(x._array.astype(dtype))
        for x in (x1, x2)
    )
    if x1.shape != x2.shape:
        x1, x2 = broadcast_tensors(x1, x2)
    directions = [div(x, at_least(norm(x, 2.0, dim, True), eps)) for x in (x1, x2)]
    return sum(mul(*directions), dim)


def at_least(x: Tensor, least: float) -> Tensor:
    """Return max(x, least) with the whole gradient for ``x``, as in PyTorch."""
    array = x._array
    out = wrap(np.asarray(np.maximum(array, array.dtype.type(least))))
    record("CloneBackward0", (x,), out, lambda needs, grad: grad)
    return out


@names_arguments
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """Return the norm along the last axis of x1 - x2 + eps."""
    return norm(add(sub(x1, x2), eps), p, -1, keepdim)


def dist(input: Tensor, other: Tensor, p: float = 2.0) -> Tensor:
    """Return the p-norm of input - other, over all elements."""
    check_arguments("dist", input=input, other=other)
    return norm(sub(input, other), number("dist", "p", p))


@names_arguments
def cdist(
    x1: Tensor,
    x2: Tensor,
    p: float = 2.0,
    compute_mode: str = "use_mm_for_euclid_dist_if_necessary",
) -> Tensor:
    """Return the p-norm distances of each row of x1 to each row of x2.

    Parameters
    ----------
    x1, x2 : (*, P, M) and (*, R, M), of one floating-point dtype; the first axes broadcast
    p : number, not negative
    compute_mode : str
        Whether Euclidean distances come from a matrix product: 'use_mm_for_euclid_dist',
        'donot_use_mm_for_euclid_dist', or the default, where there are more than 25 rows.

    Returns
    -------
    Tensor, (*, P, R)

    Raises
    ------
    RuntimeError
        The shapes do not fit together, or p is negative.
    """
    check_arguments("cdist", x1=x1, x2=x2)
    for name, x in (("X1", x1), ("X2", x2)):
        kind = scalar_name(x._array.dtype)
        refuse_complex(f"cdist only supports floating-point dtypes, {name} got: {kind}", x)
    for name, x in (("X1", x1), ("X2", x2)):
        if x._array.ndim < 2:
            raise RuntimeError(
                f"cdist only supports at least 2D tensors, {name} got: {x._array.ndim}D"
            )
    (rows, size), (others, length) = x1._array.shape[-2:], x2._array.shape[-2:]
    if size != length:
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {size} X2: {length}"
        )
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    large = rows > 25 or others > 25
    by_product = compute_mode == "use_mm_for_euclid_dist" or (
        large and not compute_mode.startswith("donot")
    )
    if p == 2 and by_product:
        return _euclidean(x1, x2)
    return norm(sub(unsqueeze(x1, -2), unsqueeze(x2, -3)), p, -1)


def _euclidean(x: Tensor, y: Tensor) -> Tensor:
    """Return the distances from |x|^2 - 2 x.y + |y|^2, with a gradient of 0 where they are 0."""
    with no_grad():
        squares = sub(
            add(sum(square(x), -1, True), transpose(sum(square(y), -1, True), -2, -1)),
            mul(matmul(x, transpose(y, -2, -1)), 2),
        )
    out = wrap(np.sqrt(np.maximum(squares._array, 0)))
    record("CdistBackward0", (x, y), out, fitted(_euclidean_backward, x, y), (x, y, out))
    return out


def _euclidean_backward(
    needs: tuple[bool, ...], grad: Tensor, x: Tensor, y: Tensor, out: Tensor
) -> tuple:
    over = masked(div(grad, out), out._array != 0)
    grads = []
    for a, b, share in ((x, y, over), (y, x, transpose(over, -2, -1))):
        grads.append(sub(mul(a, sum(share, -1, True)), matmul(share, b)))
    return grads[0] if needs[0] else None, grads[1] if needs[1] else None


@in_float32
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Return the tensor with those slices along an axis scaled whose p-norm is above maxnorm."""
    check_tensor("renorm", input)
    rank = input._array.ndim
    if rank < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {rank} dimensions")
    p, maxnorm = number("renorm", "p", p), number("renorm", "maxnorm", maxnorm)
    if not p > 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if not maxnorm >= 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    over = [axis for axis in range(rank) if axis != wrap_dim(dim, rank)]
    with no_grad():
        long = norm(input, p, over, True)._array > maxnorm
    # Slices that stay as they are, also those of NaN, have no part in the norms' gradients.
    size = norm(masked(input, np.broadcast_to(long, input._array.shape)), p, over, True)
    return mul(input, where(wrap(long), mul(reciprocal(add(size, 1e-7)), maxnorm), 1.0))


FUNCTIONS_ONLY = {"cdist", "cosine_similarity", "normalize", "pairwise_distance"}
METHODS = in_place_methods(renorm)
