"""`torch.accelerator` on a machine without one."""

from __future__ import annotations

from typing import Any


def is_available() -> bool:
    """Return False."""
    return False


def device_count() -> int:
    """Return 0."""
    return 0


def current_accelerator(check_available: bool = False) -> Any:
    """Return None."""


def synchronize(device: Any = None) -> None:
    """Do nothing: every call is finished when it returns."""
