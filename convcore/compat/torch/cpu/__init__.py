"""`torch.cpu`: the only device."""

from __future__ import annotations


def is_available() -> bool:
    """Return True."""
    return True


def device_count() -> int:
    """Return 1."""
    return 1


def current_device() -> str:
    """Return 'cpu'."""
    return "cpu"


def synchronize(device: object = None) -> None:
    """Do nothing: every call is finished when it returns."""
