"""Input and weight gradients of convolutions as functions: differentiable, like any other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from convcore._tensor import Tensor
from convcore.engine.geometry import Steps
from convcore.functions.windows.conv import gradient_by_input, gradient_by_weight

__all__ = [
    "conv1d_input",
    "conv1d_weight",
    "conv2d_input",
    "conv2d_weight",
    "conv3d_input",
    "conv3d_weight",
]


def conv1d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Return the gradient of `conv1d` by its input, (N, C_in, W); as `conv2d_input`."""
    steps = Steps(stride, padding, dilation, groups)
    return gradient_by_input(1, input_size, weight, grad_output, steps)


def conv1d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Return the gradient of `conv1d` by its weight, (C_out, C_in/G, KW).

    The arguments are those of `conv2d_weight`.
    """
    steps = Steps(stride, padding, dilation, groups)
    return gradient_by_weight(1, input, weight_size, grad_output, steps)


def conv2d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Return the gradient of `conv2d` by its input.

    Parameters
    ----------
    input_size : (N, C_in, H, W)
        The shape of the input: a stride above 1 leaves it open.
    weight : (C_out, C_in/G, KH, KW)
    grad_output : (N, C_out, OH, OW), the same dtype
        The gradient of the output.
    stride, padding, dilation : int, or one int an axis
    groups : int
        Those of the convolution.

    Returns
    -------
    (N, C_in, H, W)

    Raises
    ------
    TypeError
        ``weight`` or ``grad_output`` is no tensor, or a parameter no int.
    RuntimeError
        Shapes or dtypes that do not go together, or a parameter out of its range.

    Examples
    --------
    >>> import convcore
    >>> weight, grad_output = convcore.ones(1, 1, 2, 2), convcore.ones(1, 1, 2, 2)
    >>> conv2d_input((1, 1, 3, 3), weight, grad_output)
    tensor([[[[1., 2., 1.],
              [2., 4., 2.],
              [1., 2., 1.]]]])
    """
    steps = Steps(stride, padding, dilation, groups)
    return gradient_by_input(2, input_size, weight, grad_output, steps)


def conv2d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Return the gradient of `conv2d` by its weight.

    Parameters
    ----------
    input : (N, C_in, H, W)
    weight_size : (C_out, C_in/G, KH, KW)
        The shape of the weight: a stride above 1 leaves it open.
    grad_output, stride, padding, dilation, groups
        As for `conv2d_input`.

    Returns
    -------
    (C_out, C_in/G, KH, KW)

    Raises
    ------
    TypeError, RuntimeError
        As `conv2d_input`.

    Examples
    --------
    >>> import convcore
    >>> image = convcore.arange(9.0).view(1, 1, 3, 3)
    >>> conv2d_weight(image, (1, 1, 2, 2), convcore.ones(1, 1, 2, 2))
    tensor([[[[ 8., 12.],
              [20., 24.]]]])
    """
    steps = Steps(stride, padding, dilation, groups)
    return gradient_by_weight(2, input, weight_size, grad_output, steps)


def conv3d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Return the gradient of `conv3d` by its input, (N, C_in, D, H, W); as `conv2d_input`."""
    steps = Steps(stride, padding, dilation, groups)
    return gradient_by_input(3, input_size, weight, grad_output, steps)


def conv3d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Return the gradient of `conv3d` by its weight, (C_out, C_in/G, KD, KH, KW).

    The arguments are those of `conv2d_weight`.
    """
    steps = Steps(stride, padding, dilation, groups)
    return gradient_by_weight(3, input, weight_size, grad_output, steps)
