"""Vector products (cross), and matrices along a diagonal (block_diag)."""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore._tensor.dtypes import get_default_dtype
from convcore.functions._support.arguments import check_arguments, check_tensor
from convcore.functions._support.axes import wrap_dim
from convcore.functions.elementwise.arithmetic import mul, sub
from convcore.functions.shapes.broadcast import broadcast_tensors
from convcore.functions.shapes.joining import cat
from convcore.functions.shapes.rearrange import roll
from convcore.functions.shapes.shape import reshape

__all__ = ["block_diag", "cross"]


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


FUNCTIONS_ONLY = {"block_diag"}
