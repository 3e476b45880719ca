"""Data loading, hook handles, activation checkpointing, TensorBoard, under PyTorch's paths."""

import importlib
from typing import TYPE_CHECKING, Any

from convcore._errors import names as _names
from convcore.utils import data, hooks

if TYPE_CHECKING:
    from convcore.utils import checkpoint as checkpoint
    from convcore.utils import tensorboard as tensorboard

__all__ = ["checkpoint", "data", "hooks"]


if not TYPE_CHECKING:  # type checkers find the module, and misspelt names

    def __getattr__(name: str) -> Any:
        if name in ("checkpoint", "tensorboard"):  # rarely needed
            try:
                return importlib.import_module(f"convcore.utils.{name}")
            except ModuleNotFoundError as error:  # of a package that is not installed
                raise AttributeError(str(error), name=name) from None
        raise _names.missing_name(__name__, name)
