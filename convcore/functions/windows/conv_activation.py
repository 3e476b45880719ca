"""Fused convolution and activation, for inference and compiled nets.

The activation is applied while the outputs are still in cache, and only its result is saved.  It is
convcore's own: PyTorch's functions stay as they are, with a node and its hooks for each.
"""

from __future__ import annotations

from typing import Any

from convcore._tensor import Tensor
from convcore.engine.conv.epilogue import Activation, activation_parameters
from convcore.engine.geometry import Steps
from convcore.functions._support.arguments import check_arguments
from convcore.functions.elementwise.activation import sloped
from convcore.functions.elementwise.piecewise import masked
from convcore.functions.windows.conv import convolution

__all__ = ["conv_activation"]


def conv_activation(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    activation: Activation = "relu",
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Convolve, add the bias and apply an activation, in one pass over the result's memory.

    y = activation(conv(input, weight) + bias), over as many axes as the weight's kernel has.

    Parameters
    ----------
    input : (N, C_in, *sizes) or (C_in, *sizes); one to three sizes, floating point
    weight : (C_out, C_in/G, *kernel), the same dtype
    bias : (C_out,), the same dtype, optional
    activation : 'relu', 'relu6', ('leaky_relu', slope) with a slope of at least 0, or None
    stride, padding, dilation, groups
        As for `conv2d`.

    Returns
    -------
    (N, C_out, *outs) or (C_out, *outs)
        What the convolution followed by the activation returns.

    Raises
    ------
    TypeError
        An argument is no tensor, or no floating-point one.
    ValueError
        No such activation.
    RuntimeError
        As for `conv2d`.

    Notes
    -----
    One node in the graph, where the two functions have two.  Backward needs input, weight and
    result: which side of 0 (or of 6) an element was on is told by the result, which is why a slope
    must not be negative.

    Examples
    --------
    >>> import convcore
    >>> image = convcore.arange(4.0).view(1, 1, 2, 2) - 1.5
    >>> conv_activation(image, convcore.ones(1, 1, 1, 1), activation="relu")
    tensor([[[[0.0000, 0.0000],
              [0.5000, 1.5000]]]])
    """
    check_arguments("conv_activation", input=input, weight=weight)
    array = weight._array
    rank = array.ndim - 2
    if not 1 <= rank <= 3:
        raise RuntimeError(f"weight must have 3 to 5 axes, got shape {list(array.shape)}")
    fused = None
    if activation is not None:
        activation_parameters(activation, array.dtype)  # an error where there is no such activation
        if not isinstance(activation, str) and activation[1] < 0:
            raise ValueError(f"the slope of leaky_relu must be at least 0, got {activation[1]}")
        fused = activation, lambda grad, y: _derivative(activation, grad, y)
    steps = Steps(stride, padding, dilation, groups)
    return convolution(rank, input, weight, bias, steps, fused)


def _derivative(activation: Activation, grad: Tensor, y: Tensor) -> Tensor:
    """Return the gradient before the activation; it passes where the result is NaN."""
    array = y._array
    match activation:
        case "relu":
            return masked(grad, array != 0)
        case "relu6":
            return masked(grad, ~((array <= 0) | (array >= 6)))
        case (_, slope):
            return sloped(grad, array > 0, slope)
    return grad
