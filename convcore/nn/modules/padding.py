"""Padding layers: constant, zero, reflection, replication and circular padding."""

from __future__ import annotations

from collections.abc import Sequence

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

    _printed_values: tuple[str, ...] = ("padding",)

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        self.padding = _ntuple(2 * self.rank)(padding)

    def forward(self, input: Tensor) -> Tensor:
        """Return ``input`` with the padding around it."""
        return functional.pad(input, self.padding, self.mode)


class _ConstantPadNd(_PadNd):
    mode = "constant"

    _printed_values: tuple[str, ...] = ()
    _printed_attributes: tuple[str, ...] = ("padding", "value")

    def __init__(self, padding: int | Sequence[int], value: float | None) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """Return ``input`` with the value around it."""
        return functional.pad(input, self.padding, self.mode, self.value)


class _ZeroPadNd(_ConstantPadNd):
    _printed_values = _PadNd._printed_values
    _printed_attributes = ()

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__(padding, 0.0)


class _ReflectionPadNd(_PadNd):
    mode = "reflect"


class _ReplicationPadNd(_PadNd):
    mode = "replicate"


class _CircularPadNd(_PadNd):
    mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        """Return ``input`` with the padding around it."""
        if input.dim() not in (self.rank + 1, self.rank + 2):
            raise ValueError(
                f"expected {self.rank + 1}D or {self.rank + 2}D input (got {input.dim()}D input)"
            )
        return super().forward(input)


class ConstantPad1d(_ConstantPadNd):
    """Constant padding of (N, C, L) or (C, L); see `ConstantPad2d`."""

    rank = 1


class ConstantPad2d(_ConstantPadNd):
    """Constant padding of (N, C, H, W) or (C, H, W): one value around each plane.

    Parameters
    ----------
    padding : int, or (left, right, top, bottom)
        How many elements are added; negative numbers crop.
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
    """Constant padding of (N, C, D, H, W) or (C, D, H, W); see `ConstantPad2d`."""

    rank = 3


class ZeroPad1d(_ZeroPadNd):
    """Zero padding of (N, C, L) or (C, L); see `ConstantPad2d`."""

    rank = 1


class ZeroPad2d(_ZeroPadNd):
    """Zero padding of (N, C, H, W) or (C, H, W); see `ConstantPad2d`."""

    rank = 2


class ZeroPad3d(_ZeroPadNd):
    """Zero padding of (N, C, D, H, W) or (C, D, H, W); see `ConstantPad2d`."""

    rank = 3


class ReflectionPad1d(_ReflectionPadNd):
    """Reflection padding of (N, C, L) or (C, L); see `ReflectionPad2d`."""

    rank = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Reflection padding of (N, C, H, W) or (C, H, W).

    The plane is mirrored at its edge pixels, which are not repeated.

    Parameters
    ----------
    padding : int, or (left, right, top, bottom)
        How many elements are added, fewer than the axis has.

    Examples
    --------
    >>> import convcore
    >>> ReflectionPad2d((2, 1, 0, 0))(convcore.arange(3.0).view(1, 1, 3))
    tensor([[[2., 1., 0., 1., 2., 1.]]])
    """

    rank = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Reflection padding of (N, C, D, H, W) or (C, D, H, W); see `ReflectionPad2d`."""

    rank = 3


class ReplicationPad1d(_ReplicationPadNd):
    """Replication padding of (N, C, L) or (C, L); see `ReplicationPad2d`."""

    rank = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Replication padding of (N, C, H, W) or (C, H, W): the edge pixels are repeated.

    Parameters
    ----------
    padding : int, or (left, right, top, bottom)
        How many elements are added.
    """

    rank = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Replication padding of (N, C, D, H, W) or (C, D, H, W); see `ReplicationPad2d`."""

    rank = 3


class CircularPad1d(_CircularPadNd):
    """Circular padding of (N, C, L) or (C, L); see `CircularPad2d`."""

    rank = 1


class CircularPad2d(_CircularPadNd):
    """Circular padding of (N, C, H, W) or (C, H, W): each plane wraps around.

    Parameters
    ----------
    padding : int, or (left, right, top, bottom)
        How many elements are added, at most as many as the axis has.
    """

    rank = 2


class CircularPad3d(_CircularPadNd):
    """Circular padding of (N, C, D, H, W) or (C, D, H, W); see `CircularPad2d`."""

    rank = 3
