"""`torch.accelerator` on a machine without one."""

from __future__ import annotations

from typing import Any

from convcore.cuda import device_count as device_count
from convcore.cuda import is_available as is_available


def current_accelerator(check_available: bool = False) -> Any:
    """Return None."""


def synchronize(device: Any = None) -> None:
    """Do nothing: every call is finished when it returns."""
