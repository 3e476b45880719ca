"""Checkpoints: `save` and `load` files in PyTorch's format, without PyTorch."""

from convcore.serialization.load import load
from convcore.serialization.save import save

__all__ = ["load", "save"]
