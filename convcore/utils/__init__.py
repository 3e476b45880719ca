"""What supports the rest, under PyTorch's paths: `utils.hooks`."""

from convcore.utils import hooks

__all__ = ["hooks"]
