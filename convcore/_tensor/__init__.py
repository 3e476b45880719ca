"""Tensor, and what it is made of: dtypes, devices, sizes, storages, creation and printing."""

from convcore._tensor.dtype_names import legacy_name, scalar_name
from convcore._tensor.tensor import (
    Tensor,
    channels_last,
    channels_last_3d,
    complete,
    contiguous_format,
    memory_format,
    on_subclass,
    preserve_format,
    wrap,
)

__all__ = [
    "Tensor",
    "channels_last",
    "channels_last_3d",
    "complete",
    "contiguous_format",
    "legacy_name",
    "memory_format",
    "on_subclass",
    "preserve_format",
    "scalar_name",
    "wrap",
]
