"""How many multiply-adds a module's call takes, by the definition of what it computes."""

from __future__ import annotations

import math
from typing import Any

from convcore import nn
from convcore._tensor import Tensor

__all__ = ["multiply_adds"]

_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)


def multiply_adds(module: nn.Module, args: tuple, output: Any) -> int:
    """Return the multiply-adds of one call of a module: those of convolutions and linear layers.

    Parameters
    ----------
    module : Module
    args : tuple
        What it was called with.
    output : object
        What it returned.

    Returns
    -------
    int
        A convolution has N * C_out * P * K, a transposed one as many as the convolution that it
        transposes, a linear layer in_features for each output; other modules have none: they add,
        compare and scale, each element a few times.
    """
    if isinstance(module, _CONVOLUTIONS) and isinstance(output, Tensor):
        return output.numel() * math.prod(module.weight.shape[1:])
    if isinstance(module, _TRANSPOSED) and args and isinstance(args[0], Tensor):
        return args[0].numel() * math.prod(module.weight.shape[1:])
    if isinstance(module, nn.Linear) and isinstance(output, Tensor):
        return output.numel() * module.in_features
    return 0
