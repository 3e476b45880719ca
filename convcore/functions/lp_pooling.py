"""L_p pooling: the p-norm of every window; and poolings that always return indices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from convcore._tensor import Tensor
from convcore.engine.ranks import of_rank
from convcore.functions import pooling
from convcore.functions._support.arguments import check_tensor, number
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


_MEANS = {1: avg_pool1d, 2: avg_pool2d, 3: avg_pool3d}


def _lp_pool(
    rank: int,
    input: Tensor,
    norm_type: float,
    kernel_size: Any,
    stride: Any = None,
    ceil_mode: bool = False,
) -> Tensor:
    function = f"lp_pool{rank}d"
    check_tensor(function, input)
    norm_type = number(function, "norm_type", norm_type)
    if norm_type == 0:
        raise RuntimeError(f"{function}(): argument 'norm_type' must not be 0")
    count = math.prod(pooling.ints_per_axis(function, "kernel_size", kernel_size, rank))
    means = _MEANS[rank](pow(input, norm_type), kernel_size, stride, 0, ceil_mode)
    # sign(m) |m| is m, but where it is 0 it has no gradient, as in PyTorch.
    return pow(mul(mul(sign(means), relu(abs(means))), count), 1.0 / norm_type)


@of_rank(1, _lp_pool)
def lp_pool1d() -> None:
    """Return the p-norm of every window of (N, C, W) or (C, W); see `lp_pool2d`."""


@of_rank(2, _lp_pool)
def lp_pool2d() -> None:
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


@of_rank(3, _lp_pool)
def lp_pool3d() -> None:
    """Return the p-norm of every window of (N, C, D, H, W) or (C, D, H, W); see `lp_pool2d`."""


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
