"""Size, the class of a tensor's shape."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import Any, SupportsIndex, overload

__all__ = ["Size"]


class Size(tuple[int, ...]):
    """A tuple of ints that prints as PyTorch's, and whose slices and sums are Sizes.

    Examples
    --------
    >>> Size([2, 3])[:1] + (4, 5)
    torch.Size([2, 4, 5])
    """

    __slots__ = ()

    def __new__(cls, sizes: Iterable[int] = ()) -> Size:
        return tuple.__new__(cls, [_checked(i, size) for i, size in enumerate(sizes)])

    def numel(self) -> int:
        """Return the number of elements of a tensor of this size."""
        return math.prod(self)

    @overload
    def __getitem__(self, index: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Size: ...
    def __getitem__(self, index: Any) -> Any:
        found = tuple.__getitem__(self, index)
        return trusted(found) if found.__class__ is tuple else found

    def __add__(self, other: Any) -> Size:
        return Size(tuple.__add__(self, other)) if isinstance(other, tuple) else NotImplemented

    def __radd__(self, other: Any) -> Size:
        return Size(tuple.__add__(other, self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, times: Any) -> Size:
        return trusted(tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    def __reduce__(self) -> tuple:
        return Size, (tuple(self),)


# Size(shape) without its checks: for an ndarray's shape.
trusted = partial(tuple.__new__, Size)


def _checked(place: int, size: Any) -> int:
    """Return a size as an int."""
    try:
        return size.__index__()
    except (AttributeError, TypeError):
        raise TypeError(
            f"torch.Size() takes an iterable of 'int' (item {place} is '{type(size).__name__}')"
        ) from None
