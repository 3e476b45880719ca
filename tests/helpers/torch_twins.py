"""The nets of convcore.models made of PyTorch's modules, and weights copied between libraries."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

from convcore import models
from convcore.models.blocks import built_with


def models_of_torch() -> SimpleNamespace:
    """Return the names of convcore.models for nets of PyTorch's modules; PyTorch must be there."""
    import torch

    public = {name: value for name, value in vars(models).items() if callable(value)}
    return SimpleNamespace(
        **{
            name: built_with(one, torch) if isinstance(one, type) else partial(one, library=torch)
            for name, one in public.items()
        }
    )


def copied_state(module: Any, library: Any) -> dict[str, Any]:
    """Return a module's state as tensors of another library."""
    state = module.state_dict()
    return {name: library.from_numpy(value.numpy().copy()) for name, value in state.items()}
