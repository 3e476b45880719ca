"""Products of vectors."""

from __future__ import annotations

from convcore._tensor import Tensor
from convcore.functions._support.arguments import check_arguments
from convcore.functions.products import products

__all__ = ["cross"]


def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """Return the cross product of vectors of three elements that lie along an axis."""
    check_arguments("linalg_cross", input=input, other=other)
    return products.cross(input, other, dim)
