"""Pooling layers: max, average and adaptive pooling, and max unpooling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from convcore._tensor import Tensor
from convcore.nn import functional
from convcore.nn.modules.module import Module
from convcore.nn.modules.utils import _pair, _single, _triple, at_call

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]


class _MaxPoolNd(Module):
    _pool: Callable[..., Any]
    _printed_attributes = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        """Return the maximum of each window of ``input``, with its index if asked for."""
        return self._pool(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )


class MaxPool1d(_MaxPoolNd):
    """1-D max pooling of (N, C, L) or (C, L); parameters as for `MaxPool2d`."""

    _pool = at_call(functional.max_pool1d)


class MaxPool2d(_MaxPoolNd):
    """2-D max pooling of (N, C, H, W) or (C, H, W).

    Parameters
    ----------
    kernel_size, stride, padding, dilation, return_indices, ceil_mode
        As for `functional.max_pool2d`.

    Examples
    --------
    >>> import convcore
    >>> MaxPool2d(2)(convcore.arange(16.0).view(1, 4, 4))
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """

    _pool = at_call(functional.max_pool2d)


class MaxPool3d(_MaxPoolNd):
    """3-D max pooling of (N, C, D, H, W) or (C, D, H, W); parameters as for `MaxPool2d`."""

    _pool = at_call(functional.max_pool3d)


class _MaxUnpoolNd(Module):
    _unpool: Callable[..., Tensor]
    _per_axis: Callable[[Any], tuple]
    _printed_attributes = ("kernel_size", "stride", "padding")

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
    ) -> None:
        super().__init__()
        self.kernel_size = self._per_axis(kernel_size)
        self.stride = self._per_axis(kernel_size if stride is None else stride)
        self.padding = self._per_axis(padding)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """Return zeros with the elements of ``input`` at ``indices``."""
        return self._unpool(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class MaxUnpool1d(_MaxUnpoolNd):
    """1-D max unpooling of (N, C, L) or (C, L); see `MaxUnpool2d`."""

    _unpool = at_call(functional.max_unpool1d)
    _per_axis = staticmethod(_single)


class MaxUnpool2d(_MaxUnpoolNd):
    """2-D max unpooling of (N, C, H, W) or (C, H, W): a partial inverse of `MaxPool2d`.

    Puts each maximum at the index that `MaxPool2d` gives with ``return_indices``; all other
    elements are zero.

    Parameters
    ----------
    kernel_size, stride, padding
        Those of the max pooling.

    Examples
    --------
    >>> import convcore
    >>> x = convcore.arange(4.0).view(1, 2, 2)
    >>> MaxUnpool2d(2)(*MaxPool2d(2, return_indices=True)(x))
    tensor([[[0., 0.],
             [0., 3.]]])
    """

    _unpool = at_call(functional.max_unpool2d)
    _per_axis = staticmethod(_pair)


class MaxUnpool3d(_MaxUnpoolNd):
    """3-D max unpooling of (N, C, D, H, W) or (C, D, H, W); see `MaxUnpool2d`."""

    _unpool = at_call(functional.max_unpool3d)
    _per_axis = staticmethod(_triple)


class _AvgPoolNd(Module):
    _pool: Callable[..., Tensor]
    _size: Callable[[Any], Any] = staticmethod(lambda size: size)  # what is stored of a size
    _arguments = attrgetter("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad")
    _printed_attributes = ("kernel_size", "stride", "padding")

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = self._size(kernel_size)
        self.stride = self._size(kernel_size if stride is None else stride)
        self.padding = self._size(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        """Return the mean of each window of ``input``."""
        return self._pool(input, *self._arguments(self))


class AvgPool1d(_AvgPoolNd):
    """1-D average pooling of (N, C, L) or (C, L); parameters as for `AvgPool2d`."""

    _pool = at_call(functional.avg_pool1d)
    _size = staticmethod(_single)


class _AvgPoolWithDivisor(_AvgPoolNd):
    _arguments = attrgetter(
        *("kernel_size", "stride", "padding"),
        *("ceil_mode", "count_include_pad", "divisor_override"),
    )

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode, count_include_pad)
        self.divisor_override = divisor_override


class AvgPool2d(_AvgPoolWithDivisor):
    """2-D average pooling of (N, C, H, W) or (C, H, W).

    Parameters
    ----------
    kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
        As for `functional.avg_pool2d`.

    Examples
    --------
    >>> import convcore
    >>> AvgPool2d(2)(convcore.arange(16.0).view(1, 4, 4))
    tensor([[[ 2.5000,  4.5000],
             [10.5000, 12.5000]]])
    """

    _pool = at_call(functional.avg_pool2d)


class AvgPool3d(_AvgPoolWithDivisor):
    """3-D average pooling of (N, C, D, H, W) or (C, D, H, W); parameters as for `AvgPool2d`."""

    _pool = at_call(functional.avg_pool3d)


class _AdaptiveAvgPoolNd(Module):
    _pool: Callable[..., Tensor]
    _printed_attributes = ("output_size",)

    def __init__(self, output_size: int | Sequence[int | None]) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """Return the mean of each part of ``input``."""
        return self._pool(input, self.output_size)


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """1-D average pooling of (N, C, L) or (C, L) to a given size; see `AdaptiveAvgPool2d`."""

    _pool = at_call(functional.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """2-D average pooling of (N, C, H, W) or (C, H, W) to a given size.

    Each plane is divided into OH x OW parts, whose means are the output.

    Parameters
    ----------
    output_size : int, or (OH, OW)
        None keeps the size of its axis.

    Examples
    --------
    >>> import convcore
    >>> AdaptiveAvgPool2d((1, 1))(convcore.arange(4.0).view(1, 1, 2, 2))
    tensor([[[[1.5000]]]])
    """

    _pool = at_call(functional.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """3-D average pooling of (N, C, D, H, W) to a given size; see `AdaptiveAvgPool2d`."""

    _pool = at_call(functional.adaptive_avg_pool3d)


class _AdaptiveMaxPoolNd(Module):
    _pool: Callable[..., Any]
    _printed_attributes = ("output_size",)

    def __init__(
        self, output_size: int | Sequence[int | None], return_indices: bool = False
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        """Return the maximum of each part of ``input``, with its index if asked for."""
        return self._pool(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """1-D max pooling of (N, C, L) or (C, L) to a given size; see `AdaptiveMaxPool2d`."""

    _pool = at_call(functional.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """2-D max pooling of (N, C, H, W) or (C, H, W) to a given size.

    Each plane is divided into OH x OW parts, whose maxima are the output.

    Parameters
    ----------
    output_size : int, or (OH, OW)
        None keeps the size of its axis.
    return_indices : bool
        Whether the output is a pair (maxima, int64 indices into the flattened H x W plane).
    """

    _pool = at_call(functional.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """3-D max pooling of (N, C, D, H, W) to a given size; see `AdaptiveMaxPool2d`."""

    _pool = at_call(functional.adaptive_max_pool3d)
