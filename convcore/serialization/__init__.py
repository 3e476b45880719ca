"""Checkpoints: `save` and `load` files in PyTorch's format, safetensors and npz, no PyTorch."""

from convcore.serialization.errors import CheckpointError
from convcore.serialization.load import load, read_metadata
from convcore.serialization.safe import (
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    safe_globals,
)
from convcore.serialization.save import DEFAULT_PROTOCOL, save
from convcore.serialization.training_state import TrainingState

__all__ = [
    "DEFAULT_PROTOCOL",
    "CheckpointError",
    "TrainingState",
    "add_safe_globals",
    "clear_safe_globals",
    "get_safe_globals",
    "load",
    "read_metadata",
    "safe_globals",
    "save",
]
