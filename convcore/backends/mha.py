"""The switch of PyTorch's fused attention: it can be set and read, and changes nothing."""

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]

_enabled = True


def get_fastpath_enabled() -> bool:
    """Return what `set_fastpath_enabled` set last."""
    return _enabled


def set_fastpath_enabled(value: bool) -> None:
    """Store the switch."""
    global _enabled
    _enabled = value
