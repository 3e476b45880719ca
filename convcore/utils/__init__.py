"""Data loading (`utils.data`) and hook handles (`utils.hooks`), under PyTorch's paths."""

from convcore.utils import data, hooks

__all__ = ["data", "hooks"]
