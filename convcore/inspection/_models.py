"""The net that a function of inspection is given: checked."""

from __future__ import annotations

from typing import Any

from convcore import _hints, nn


def check_model(model: Any) -> None:
    """Raise TypeError unless an argument ``model`` is a Module."""
    if not isinstance(model, nn.Module):
        raise _hints.hinted(
            TypeError(f"model must be a Module, got {type(model).__name__}"),
            _hints.modules.not_a_module(model),
        )
