"""L_p pooling: the p-norm of every window; and poolings that always return indices."""

from __future__ import annotations

import math
from typing import Any

from convcore._tensor import Tensor
from convcore.functions._support.arguments import check_tensor, number
from convcore.functions.activation import relu
from convcore.functions.arithmetic import mul, neg
from convcore.functions.elementwise import abs, pow, sign
from convcore.functions.pooling import (
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    ints_per_axis,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)

__all__ = [
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d_with_indices",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d_with_indices",
    "max_pool2d_with_indices",
    "max_pool3d_with_indices",
]


_MEANS = {1: avg_pool1d, 2: avg_pool2d, 3: avg_pool3d}
_MAXIMA = {1: max_pool1d, 2: max_pool2d, 3: max_pool3d}


def _lp_pool(
    rank: int, input: Tensor, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool
) -> Tensor:
    function = f"lp_pool{rank}d"
    check_tensor(function, input)
    norm_type = number(function, "norm_type", norm_type)
    if norm_type == 0:
        raise RuntimeError(f"{function}(): argument 'norm_type' must not be 0")
    if math.isinf(norm_type):  # the largest magnitude, or the smallest
        sizes = neg(abs(input)) if norm_type < 0 else abs(input)
        largest = _MAXIMA[rank](sizes, kernel_size, stride, ceil_mode=ceil_mode)
        return neg(largest) if norm_type < 0 else largest
    count = math.prod(ints_per_axis(function, "kernel_size", kernel_size, rank))
    means = _MEANS[rank](pow(input, norm_type), kernel_size, stride, 0, ceil_mode)
    # sign(m) |m| is m, but where it is 0 it has no gradient, as in PyTorch.
    return pow(mul(mul(sign(means), relu(abs(means))), count), 1.0 / norm_type)


def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """Return the p-norm of every window of (N, C, W) or (C, W); see `lp_pool2d`."""
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """Return (sum of x^p)^(1/p) of every window: p = 1 is the sum, large p near the maximum.

    Parameters
    ----------
    input : (N, C, H, W) or (C, H, W), floating
    norm_type : number p
    kernel_size : int, or (KH, KW)
    stride : int, or (SH, SW)
        kernel_size if not given.
    ceil_mode : bool
        Add a window where the last stride leaves elements over.
    """
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """Return the p-norm of every window of (N, C, D, H, W) or (C, D, H, W); see `lp_pool2d`."""
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


# With indices


def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return what `max_pool1d` does, and the indices in the planes."""
    return max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return what `max_pool2d` does, and the indices in the planes."""
    return max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return what `max_pool3d` does, and the indices in the planes."""
    return max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Return what `adaptive_max_pool1d` does, and the indices in the planes."""
    return adaptive_max_pool1d(input, output_size, True)


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Return what `adaptive_max_pool2d` does, and the indices in the planes."""
    return adaptive_max_pool2d(input, output_size, True)


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Return what `adaptive_max_pool3d` does, and the indices in the planes."""
    return adaptive_max_pool3d(input, output_size, True)


FUNCTIONS_ONLY = __all__
