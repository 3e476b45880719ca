"""PyTorch's `cpu` module: the only device that there is.

Programs that are written for any device ask it what they ask `cuda`: whether it is there, how many
of it there are, and to wait for it.
"""

from __future__ import annotations

from typing import Any

from convcore._errors import names as _names
from convcore._tensor.device import check_device as _check_device
from convcore.cpu import amp as amp

__all__ = [
    "amp",
    "current_device",
    "device_count",
    "is_available",
    "is_initialized",
    "set_device",
    "synchronize",
]


def is_available() -> bool:
    """Return True."""
    return True


def is_initialized() -> bool:
    """Return True."""
    return True


def device_count() -> int:
    """Return 1: all cores are one device."""
    return 1


def current_device() -> str:
    """Return 'cpu'."""
    return "cpu"


def set_device(device: Any) -> None:
    """Do nothing for the CPU.

    Raises
    ------
    RuntimeError
        It is another device.
    """
    _check_device(device)


def synchronize(device: Any = None) -> None:
    """Do nothing: every call is finished when it returns."""


_names.explain_names(__name__)
