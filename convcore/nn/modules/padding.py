"""Padding as modules: elements added around planes."""

from __future__ import annotations

from typing import Any

from convcore._tensor import Tensor
from convcore.nn import functional
from convcore.nn.modules.module import Module
from convcore.nn.modules.utils import _ntuple

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class _PadNd(Module):
    rank: int  # number of axes that are padded
    mode: str

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = _ntuple(2 * self.rank)(padding)

    def forward(self, input: Tensor) -> Tensor:
        """Return ``input`` with what is added."""
        return functional.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_PadNd):
    mode = "constant"

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """Return ``input`` with the value around it."""
        return functional.pad(input, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPadNd(_ConstantPadNd):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ConstantPad1d(_ConstantPadNd):
    """Put a value before and after the last axis; see `ConstantPad2d`."""

    rank = 1


class ConstantPad2d(_ConstantPadNd):
    """Put a value around planes of (N, C, H, W) or (C, H, W).

    Parameters
    ----------
    padding : int, or (left, right, top, bottom)
        How many elements; negative numbers take elements away.
    value : number

    Examples
    --------
    >>> import convcore
    >>> ConstantPad2d((1, 0, 0, 1), 7)(convcore.zeros(1, 1, 1))
    tensor([[[7., 0.],
             [7., 7.]]])
    """

    rank = 2


class ConstantPad3d(_ConstantPadNd):
    """Put a value around volumes of (N, C, D, H, W); see `ConstantPad2d`."""

    rank = 3


class ZeroPad1d(_ZeroPadNd):
    """Put zeros before and after the last axis; see `ConstantPad2d`."""

    rank = 1


class ZeroPad2d(_ZeroPadNd):
    """Put zeros around planes of (N, C, H, W) or (C, H, W); see `ConstantPad2d`."""

    rank = 2


class ZeroPad3d(_ZeroPadNd):
    """Put zeros around volumes of (N, C, D, H, W); see `ConstantPad2d`."""

    rank = 3


class ReflectionPad1d(_PadNd):
    """Mirror (N, C, L) or (C, L) at its first and last element; see `ReflectionPad2d`."""

    rank = 1
    mode = "reflect"


class ReflectionPad2d(_PadNd):
    """Mirror planes of (N, C, H, W) or (C, H, W) at their edge pixels.

    Parameters
    ----------
    padding : int, or (left, right, top, bottom)
        How many elements, fewer than there are.

    Examples
    --------
    >>> import convcore
    >>> ReflectionPad2d((2, 1, 0, 0))(convcore.arange(3.0).view(1, 1, 3))
    tensor([[[2., 1., 0., 1., 2., 1.]]])
    """

    rank = 2
    mode = "reflect"


class ReflectionPad3d(_PadNd):
    """Mirror volumes of (N, C, D, H, W) at their faces; see `ReflectionPad2d`."""

    rank = 3
    mode = "reflect"


class ReplicationPad1d(_PadNd):
    """Repeat the first and the last element of (N, C, L) or (C, L); see `ReplicationPad2d`."""

    rank = 1
    mode = "replicate"


class ReplicationPad2d(_PadNd):
    """Repeat the edge pixels of planes of (N, C, H, W) or (C, H, W).

    Parameters
    ----------
    padding : int, or (left, right, top, bottom)
        How many times.
    """

    rank = 2
    mode = "replicate"


class ReplicationPad3d(_PadNd):
    """Repeat the faces of volumes of (N, C, D, H, W); see `ReplicationPad2d`."""

    rank = 3
    mode = "replicate"


class CircularPad1d(_PadNd):
    """Go on with (N, C, L) or (C, L) from its other end; see `CircularPad2d`."""

    rank = 1
    mode = "circular"


class CircularPad2d(_PadNd):
    """Go on with planes of (N, C, H, W) or (C, H, W) from their other end.

    Parameters
    ----------
    padding : int, or (left, right, top, bottom)
        How many elements, at most as many as there are.
    """

    rank = 2
    mode = "circular"


class CircularPad3d(_PadNd):
    """Go on with volumes of (N, C, D, H, W) from their other end; see `CircularPad2d`."""

    rank = 3
    mode = "circular"
