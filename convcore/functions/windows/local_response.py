"""Local response normalization across channels, as in AlexNet."""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, wrap
from convcore._tensor.creation.arguments import checked_number
from convcore.functions._support.arguments import check_tensor
from convcore.functions.elementwise.arithmetic import add, div, mul
from convcore.functions.elementwise.elementwise import pow, square
from convcore.functions.shapes.joining import cat
from convcore.functions.shapes.shape import reshape
from convcore.functions.windows.pooling import avg_pool2d

__all__ = ["local_response_norm"]


@names_arguments
def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Divide by (k + alpha * the mean square of ``size`` neighbouring channels)^beta.

    Parameters
    ----------
    input : (N, C, *sizes), with one spatial axis at least
    size : int
        Channels outside count as zeros.
    alpha, beta, k : numbers

    Raises
    ------
    ValueError
        There are less than three axes.

    References
    ----------
    A. Krizhevsky, I. Sutskever, G. Hinton, "ImageNet classification with deep convolutional neural
    networks", NeurIPS 2012, section 3.3.
    """
    check_tensor("local_response_norm", input)
    if input._array.ndim < 3:
        raise ValueError(
            "Expected 3D or higher dimensionality                          input (got "
            f"{input._array.ndim} dimensions)"
        )
    if not input._array.size:
        return input
    means = _channel_means(square(input), size // 2, size)
    alpha, beta, k = (
        checked_number("local_response_norm", value, name)
        for name, value in (("alpha", alpha), ("beta", beta), ("k", k))
    )
    return div(input, pow(add(mul(means, alpha), k), beta))


def _channel_means(x: Tensor, before: int, size: int) -> Tensor:
    """Return the means of windows of channels, of which ``before`` are before each."""
    shape: Any = x._array.shape
    dtype = x._array.dtype
    gaps = [wrap(np.zeros((shape[0], n, *shape[2:]), dtype)) for n in (before, size - 1 - before)]
    wide = cat([gaps[0], x, gaps[1]], 1)
    lines = reshape(wide, shape[0], 1, wide._array.shape[1], -1)
    return reshape(avg_pool2d(lines, (size, 1), 1), shape)


FUNCTIONS_ONLY = __all__
