"""Data loading, hook handles and activation checkpointing, under PyTorch's paths."""

import importlib
from typing import Any

from convcore.utils import data, hooks

__all__ = ["checkpoint", "data", "hooks"]


def __getattr__(name: str) -> Any:
    if name == "checkpoint":  # rarely needed
        return importlib.import_module("convcore.utils.checkpoint")
    raise AttributeError(f"module 'convcore.utils' has no attribute {name!r}")
