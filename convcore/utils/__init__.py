"""Data loading, hook handles and activation checkpointing, under PyTorch's paths."""

import importlib
from typing import TYPE_CHECKING, Any

from convcore import _misnamed
from convcore.utils import data, hooks

if TYPE_CHECKING:
    from convcore.utils import checkpoint as checkpoint

__all__ = ["checkpoint", "data", "hooks"]


if not TYPE_CHECKING:  # type checkers find the module, and misspelt names

    def __getattr__(name: str) -> Any:
        if name == "checkpoint":  # rarely needed
            return importlib.import_module("convcore.utils.checkpoint")
        raise _misnamed.missing_name(__name__, name)
