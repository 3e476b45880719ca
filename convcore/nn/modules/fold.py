"""Unfold (im2col) and Fold (col2im) as layers."""

from __future__ import annotations

from collections.abc import Sequence

from convcore._tensor import Tensor
from convcore.nn import functional
from convcore.nn.modules.module import Module

__all__ = ["Fold", "Unfold"]


class Unfold(Module):
    """im2col: the windows of (N, C, H, W) as columns, (N, C*KH*KW, P); both may lack N.

    Parameters
    ----------
    kernel_size, dilation, padding, stride : int, or one for H and one for W

    Examples
    --------
    >>> import convcore
    >>> Unfold((2, 3))(convcore.ones(2, 5, 3, 4)).shape
    torch.Size([2, 30, 4])
    """

    _printed_attributes = ("kernel_size", "dilation", "padding", "stride")

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        stride: int | Sequence[int] = 1,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        """Return the columns of ``input``."""
        return functional.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(Module):
    """col2im: sum columns at their windows' positions; the adjoint of `Unfold`, not its inverse.

    Parameters
    ----------
    output_size : int, or (H, W)
    kernel_size, dilation, padding, stride : int, or one for H and one for W

    Examples
    --------
    >>> import convcore
    >>> Fold((4, 5), (2, 2))(convcore.ones(1, 12, 12)).shape
    torch.Size([1, 3, 4, 5])
    """

    _printed_attributes = ("output_size", "kernel_size", "dilation", "padding", "stride")

    def __init__(
        self,
        output_size: int | Sequence[int],
        kernel_size: int | Sequence[int],
        dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        stride: int | Sequence[int] = 1,
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        """Return the images, (N, C, H, W), that the columns ``input``, (N, C*KH*KW, P), sum to."""
        return functional.fold(
            input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )
