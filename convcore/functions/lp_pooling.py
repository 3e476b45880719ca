"""L_p pooling: the p-norm of every window; and poolings that always return indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from convcore._tensor import Tensor
from convcore.functions import pooling
from convcore.functions._support.arguments import check_tensor
from convcore.functions.activation import relu
from convcore.functions.arithmetic import mul
from convcore.functions.elementwise import abs, pow, sign
from convcore.functions.pooling import avg_pool1d, avg_pool2d, avg_pool3d

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


def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """Return the p-norm of every window of (N, C, W) or (C, W); see `lp_pool2d`."""
    return _lp_pool(1, avg_pool1d, input, norm_type, kernel_size, stride, ceil_mode)


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
    return _lp_pool(2, avg_pool2d, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Tensor:
    """Return the p-norm of every window of (N, C, D, H, W) or (C, D, H, W); see `lp_pool2d`."""
    return _lp_pool(3, avg_pool3d, input, norm_type, kernel_size, stride, ceil_mode)


def _lp_pool(
    rank: int, mean: Callable, x: Tensor, p: float, kernel_size: Any, stride: Any, ceil_mode: bool
) -> Tensor:
    function = f"lp_pool{rank}d"
    check_tensor(function, x)
    if p == 0:
        raise RuntimeError(f"{function}(): argument 'norm_type' must not be 0")
    count = 1
    for size in pooling.ints_per_axis(function, "kernel_size", kernel_size, rank):
        count *= size
    means = mean(pow(x, p), kernel_size, stride, 0, ceil_mode)
    return pow(mul(mul(sign(means), relu(abs(means))), count), 1.0 / p)


# With indices


def _max_pool(name: str) -> Callable:
    pool = getattr(pooling, name)

    def function(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> tuple[Tensor, Tensor]:
        return pool(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices=True)

    return _named(name, function)


def _adaptive_max_pool(name: str) -> Callable:
    pool = getattr(pooling, name)

    def function(
        input: Tensor, output_size: Any, return_indices: bool = False
    ) -> tuple[Tensor, Tensor]:
        return pool(input, output_size, return_indices=True)

    return _named(name, function)


def _named(name: str, function: Callable) -> Callable:
    function.__name__ = function.__qualname__ = f"{name}_with_indices"
    function.__doc__ = f"Return what `{name}` does, and the indices in the planes."
    return function


max_pool1d_with_indices = _max_pool("max_pool1d")
max_pool2d_with_indices = _max_pool("max_pool2d")
max_pool3d_with_indices = _max_pool("max_pool3d")
adaptive_max_pool1d_with_indices = _adaptive_max_pool("adaptive_max_pool1d")
adaptive_max_pool2d_with_indices = _adaptive_max_pool("adaptive_max_pool2d")
adaptive_max_pool3d_with_indices = _adaptive_max_pool("adaptive_max_pool3d")

FUNCTIONS_ONLY = __all__
