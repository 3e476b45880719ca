"""Hook handles under PyTorch's path, `utils.hooks`."""

from convcore.autograd.handle import RemovableHandle, unserializable_hook

__all__ = ["RemovableHandle", "unserializable_hook"]
