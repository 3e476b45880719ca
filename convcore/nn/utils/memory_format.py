"""Memory formats of convolutions' weights."""

from __future__ import annotations

from typing import Any, TypeVar

from convcore.nn.modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from convcore.nn.modules.module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]

M = TypeVar("M", bound=Module)


def convert_conv2d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Convert the weights of all two-dimensional convolutions in a module to a memory format."""
    return _convert(module, memory_format, (Conv2d, ConvTranspose2d))


def convert_conv3d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Convert the weights of all three-dimensional convolutions in a module to a memory format."""
    return _convert(module, memory_format, (Conv3d, ConvTranspose3d))


def _convert(module: M, memory_format: Any, kinds: tuple[type, ...]) -> M:
    layers: list[Any] = [one for one in module.modules() if isinstance(one, kinds)]
    for one in layers:
        weight = one.weight
        weight.data = weight.detach().clone().contiguous(memory_format=memory_format)
    return module
