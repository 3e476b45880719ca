"""Flatten and Unflatten: layers that merge or split axes."""

from __future__ import annotations

from collections.abc import Sequence

from convcore._tensor import Tensor
from convcore.functions._support.arguments import check_tensor
from convcore.nn.modules.module import Module

__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """Merge several axes into one.

    Parameters
    ----------
    start_dim, end_dim : int
        The first and the last axis that is merged; by default all but the batch axis.

    Examples
    --------
    >>> import convcore
    >>> Flatten()(convcore.ones(32, 1, 5, 5)).shape
    torch.Size([32, 25])
    """

    _printed_attributes = ("start_dim", "end_dim")

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        """Return ``input`` with the axes merged, a view where that is possible."""
        check_tensor("flatten", input)
        return input.flatten(self.start_dim, self.end_dim)


class Unflatten(Module):
    """Split one axis into several.

    Parameters
    ----------
    dim : int
        The axis.
    unflattened_size : sequence of int
        The new axes' sizes; one may be -1, which is inferred.

    Raises
    ------
    TypeError
        ``dim`` or one of the sizes is not an int.

    Examples
    --------
    >>> import convcore
    >>> Unflatten(1, (2, 5))(convcore.ones(32, 10)).shape
    torch.Size([32, 2, 5])
    """

    _printed_attributes = ("dim", "unflattened_size")

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        if not isinstance(dim, int):
            raise TypeError(f"invalid argument type for dim, must be int, got {dim!r}")
        if not isinstance(unflattened_size, (tuple, list)):
            raise TypeError(
                "unflattened_size must be a tuple of ints, but found type "
                f"{type(unflattened_size).__name__}"
            )
        for place, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise TypeError(
                    "unflattened_size must be tuple of ints, but found element of type "
                    f"{type(size).__name__} at pos {place}"
                )
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        """Return a view of ``input`` with the axis split."""
        return input.unflatten(self.dim, self.unflattened_size)
