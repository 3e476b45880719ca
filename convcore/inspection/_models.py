"""The net that a function of inspection is given: checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from convcore import nn
from convcore._errors import hinted, hints


def check_model(model: Any) -> None:
    """Raise TypeError unless an argument ``model`` is a Module."""
    if not isinstance(model, nn.Module):
        raise hinted(
            TypeError(f"model must be a Module, got {type(model).__name__}"),
            hints.not_a_module(model),
        )


def channel_axis(shape: Sequence[int]) -> int:
    """Return the axis of the channels of images: 3 where only the last axis can be it, else 1."""
    is_last = len(shape) == 4 and shape[3] in (1, 3) and min(shape[1:3]) > 4
    return 3 if is_last else 1
