"""What supports the rest, under PyTorch's paths: `utils.hooks` and `utils.data`."""

from convcore.utils import data, hooks

__all__ = ["data", "hooks"]
