"""Changes of shape as modules."""

from __future__ import annotations

from collections.abc import Sequence

from convcore._tensor import Tensor
from convcore.nn.modules.module import Module

__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """Make one axis of several.

    Parameters
    ----------
    start_dim, end_dim : int
        The first and the last of them; by default all but the batch's.

    Examples
    --------
    >>> import convcore
    >>> Flatten()(convcore.ones(32, 1, 5, 5)).shape
    torch.Size([32, 25])
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        """Return ``input`` with fewer axes, a view where that is possible."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:  # noqa: D102
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Make several axes of one.

    Parameters
    ----------
    dim : int
        The axis.
    unflattened_size : sequence of int
        The sizes that take its place; -1 stands for what is left.

    Raises
    ------
    TypeError
        ``dim`` is no int, or the sizes are no ints.

    Examples
    --------
    >>> import convcore
    >>> Unflatten(1, (2, 5))(convcore.ones(32, 10)).shape
    torch.Size([32, 2, 5])
    """

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
        """Return ``input`` with more axes, a view of it."""
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:  # noqa: D102
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
