"""AdamW, under PyTorch's path."""

from convcore.optim.adam import AdamW

__all__ = ["AdamW"]
