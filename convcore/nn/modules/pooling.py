"""Pools as modules: the largest or the mean of each window."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from convcore._tensor import Tensor
from convcore.nn import functional
from convcore.nn.modules.module import Module
from convcore.nn.modules.utils import _pair, _single, _triple

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

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
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
        """Return the largest element of each window of ``input``."""
        return self._pool(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPoolNd):
    """Take the largest of each window of (N, C, L) or (C, L); parameters as for `MaxPool2d`."""

    _pool = staticmethod(functional.max_pool1d)


class MaxPool2d(_MaxPoolNd):
    """Take the largest element of each window of (N, C, H, W) or (C, H, W).

    Parameters
    ----------
    kernel_size : int, or one for H and one for W
        The window.
    stride : the same, optional
        From window to window; the kernel's size by default.
    padding : the same
        Minus infinities on both sides, at most half the kernel.
    dilation : the same
        From element to element within a window.
    return_indices : bool
        Whether the output is a pair, with the int64 places of the elements in their planes.
    ceil_mode : bool
        Whether a last window that is only partly inside counts.

    Examples
    --------
    >>> import convcore
    >>> MaxPool2d(2)(convcore.arange(16.0).view(1, 4, 4))
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """

    _pool = staticmethod(functional.max_pool2d)


class MaxPool3d(_MaxPoolNd):
    """Take the largest of each window of (N, C, D, H, W); parameters as for `MaxPool2d`."""

    _pool = staticmethod(functional.max_pool3d)


class _MaxUnpoolNd(Module):
    _unpool: Callable[..., Tensor]
    _per_axis: Callable[[Any], tuple]

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size = self._per_axis(kernel_size)
        self.stride = self._per_axis(kernel_size if stride is None else stride)
        self.padding = self._per_axis(padding)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """Return planes of zeros with the elements of ``input`` at ``indices``."""
        return self._unpool(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """Put maxima of (N, C, L) or (C, L) back to where they were; see `MaxUnpool2d`."""

    _unpool = staticmethod(functional.max_unpool1d)
    _per_axis = staticmethod(_single)


class MaxUnpool2d(_MaxUnpoolNd):
    """Put the maxima of windows of (N, C, H, W) or (C, H, W) back to where they were found.

    The indices are those that `MaxPool2d` gives with return_indices; all other elements are zeros.

    Parameters
    ----------
    kernel_size, stride, padding
        As that pool had them.

    Examples
    --------
    >>> import convcore
    >>> x = convcore.arange(4.0).view(1, 2, 2)
    >>> MaxUnpool2d(2)(*MaxPool2d(2, return_indices=True)(x))
    tensor([[[0., 0.],
             [0., 3.]]])
    """

    _unpool = staticmethod(functional.max_unpool2d)
    _per_axis = staticmethod(_pair)


class MaxUnpool3d(_MaxUnpoolNd):
    """Put maxima of (N, C, D, H, W) back to where they were; see `MaxUnpool2d`."""

    _unpool = staticmethod(functional.max_unpool3d)
    _per_axis = staticmethod(_triple)


class _AvgPoolNd(Module):
    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """Take the mean of each window of (N, C, L) or (C, L); parameters as for `AvgPool2d`."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = _single(kernel_size)
        self.stride = self.kernel_size if stride is None else _single(stride)
        self.padding = _single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        """Return the mean of each window of ``input``."""
        return functional.avg_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )


class _AvgPoolPlanes(_AvgPoolNd):
    _pool: Callable[..., Tensor]

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        """Return the mean of each window of ``input``."""
        return self._pool(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool2d(_AvgPoolPlanes):
    """Take the mean of each window of (N, C, H, W) or (C, H, W).

    Parameters
    ----------
    kernel_size : int, or one for H and one for W
        The window.
    stride : the same, optional
        From window to window; the kernel's size by default.
    padding : the same
        Zeros on both sides, at most half the kernel.
    ceil_mode : bool
        Whether a last window that is only partly inside counts.
    count_include_pad : bool
        Whether zeros that were added count as elements of a window.
    divisor_override : int, optional
        By what sums are divided, whatever the windows' sizes.

    Examples
    --------
    >>> import convcore
    >>> AvgPool2d(2)(convcore.arange(16.0).view(1, 4, 4))
    tensor([[[ 2.5000,  4.5000],
             [10.5000, 12.5000]]])
    """

    _pool = staticmethod(functional.avg_pool2d)


class AvgPool3d(_AvgPoolPlanes):
    """Take the mean of each window of (N, C, D, H, W); parameters as for `AvgPool2d`."""

    _pool = staticmethod(functional.avg_pool3d)


class _AdaptivePoolNd(Module):
    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class _AdaptiveAvgPoolNd(_AdaptivePoolNd):
    _pool: Callable[..., Tensor]

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """Return the mean of each part of ``input``."""
        return self._pool(input, self.output_size)


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Take the means of L_out parts of (N, C, L) or (C, L); see `AdaptiveAvgPool2d`."""

    _pool = staticmethod(functional.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Divide each plane of (N, C, H, W) or (C, H, W) into OH x OW parts and take their means.

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

    _pool = staticmethod(functional.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Take the means of parts of (N, C, D, H, W); see `AdaptiveAvgPool2d`."""

    _pool = staticmethod(functional.adaptive_avg_pool3d)


class _AdaptiveMaxPoolNd(_AdaptivePoolNd):
    _pool: Callable[..., Any]

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        """Return the largest element of each part of ``input``."""
        return self._pool(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Take the largest of L_out parts of (N, C, L) or (C, L); see `AdaptiveMaxPool2d`."""

    _pool = staticmethod(functional.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Divide each plane of (N, C, H, W) or (C, H, W) into OH x OW parts and take their largest.

    Parameters
    ----------
    output_size : int, or (OH, OW)
        None keeps the size of its axis.
    return_indices : bool
        Whether the output is a pair, with the int64 places of the elements in their planes.
    """

    _pool = staticmethod(functional.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Take the largest of parts of (N, C, D, H, W); see `AdaptiveMaxPool2d`."""

    _pool = staticmethod(functional.adaptive_max_pool3d)
