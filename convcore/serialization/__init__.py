"""Tensors in files: PyTorch's checkpoints, read and written without it."""

from convcore.serialization.load import load
from convcore.serialization.save import save

__all__ = ["load", "save"]
