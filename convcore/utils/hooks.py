"""Handles of hooks, under PyTorch's path."""

from convcore.autograd.handle import RemovableHandle, unserializable_hook

__all__ = ["RemovableHandle", "unserializable_hook"]
