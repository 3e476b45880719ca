"""L_p pooling and fractional max pooling layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from convcore._tensor import Tensor
from convcore.functions._support.arguments import ints
from convcore.nn import functional
from convcore.nn.modules.module import Module
from convcore.nn.modules.utils import _pair, _triple, at_call

__all__ = [
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
]


class _LPPoolNd(Module):
    _pool: Callable[..., Tensor]
    _printed_attributes = ("norm_type", "kernel_size", "stride", "ceil_mode")

    def __init__(
        self,
        norm_type: float,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        """Return the p-norm of each window of ``input``."""
        return self._pool(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )


class LPPool1d(_LPPoolNd):
    """1-D L_p pooling of (N, C, L) or (C, L); parameters as for `LPPool2d`."""

    _pool = at_call(functional.lp_pool1d)


class LPPool2d(_LPPoolNd):
    """2-D L_p pooling, (sum of x^p)^(1/p) of each window, of (N, C, H, W) or (C, H, W).

    Parameters
    ----------
    norm_type : float
        p.
    kernel_size : int, or one for H and one for W
    stride : the same, optional
        Distance between windows; the kernel's size by default.
    ceil_mode : bool
        Whether a last window that is only partly inside counts.
    """

    _pool = at_call(functional.lp_pool2d)


class LPPool3d(_LPPoolNd):
    """3-D L_p pooling of (N, C, D, H, W) or (C, D, H, W); parameters as for `LPPool2d`."""

    _pool = at_call(functional.lp_pool3d)


class _FractionalMaxPoolNd(Module):
    _pool: Callable[..., Any]
    _each: Callable[[Any], Any]

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        output_size: int | Sequence[int] | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if output_size is None and output_ratio is None:
            raise ValueError(
                f"{name} requires specifying either an output size, or a pooling ratio"
            )
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        self.kernel_size = self._each(kernel_size)
        ints(name, "kernel_size", self.kernel_size)
        if len(self.kernel_size) == 3 and min(self.kernel_size) <= 0:  # PyTorch's check of volumes
            raise ValueError(f"kernel_size must be greater than 0, but got {kernel_size}")
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else self._each(output_size)
        self.output_ratio = None if output_ratio is None else self._each(output_ratio)
        if self.output_ratio is not None and not all(0 < one < 1 for one in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Any:
        """Return the maximum of each window of ``input``, with its index if asked for."""
        options = (self.output_size, self.output_ratio, self.return_indices)
        samples = self._random_samples
        return self._pool(input, self.kernel_size, *options, _random_samples=samples)


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """2-D max pooling over windows at pseudorandom places.

    Parameters
    ----------
    kernel_size : int, or one for H and one for W
    output_size : the same
    output_ratio : number from (0, 1), or one for H and one for W
        Of the output's sizes to the input's, instead of output_size.
    return_indices : bool
        Whether the output is a pair (maxima, int64 indices into the flattened H x W plane).

    References
    ----------
    B. Graham, "Fractional max-pooling", 2014.
    """

    _pool = at_call(functional.fractional_max_pool2d)
    _each = staticmethod(_pair)


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """3-D max pooling over windows at pseudorandom places; see `FractionalMaxPool2d`."""

    _pool = at_call(functional.fractional_max_pool3d)
    _each = staticmethod(_triple)
