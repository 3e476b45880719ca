"""Multiply-add counts of convolutions and linear layers."""

from __future__ import annotations

import math
from typing import Any

from convcore import nn
from convcore._tensor import Tensor

__all__ = ["multiply_adds"]

_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)


def multiply_adds(module: nn.Module, args: tuple, output: Any) -> int:
    """Return the multiply-adds of one call of a convolution or linear layer; 0 for other modules.

    Parameters
    ----------
    module : Module
    args : tuple
        The call's arguments.
    output : object
        The call's result.

    Returns
    -------
    int
        N * C_out * P * K for a convolution with P output pixels and K products a sum; for a
        transposed one as many as for the convolution that it transposes; in_features for each
        output element of a linear layer.
    """
    if isinstance(module, _CONVOLUTIONS) and isinstance(output, Tensor):
        return output.numel() * math.prod(module.weight.shape[1:])
    if isinstance(module, _TRANSPOSED) and args and isinstance(args[0], Tensor):
        return args[0].numel() * math.prod(module.weight.shape[1:])
    if isinstance(module, nn.Linear) and isinstance(output, Tensor):
        return output.numel() * module.in_features
    return 0
