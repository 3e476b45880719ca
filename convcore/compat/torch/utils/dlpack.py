"""DLPack, by which libraries hand arrays to each other."""

from __future__ import annotations

from typing import Any

from convcore import from_dlpack as from_dlpack


def to_dlpack(tensor: Any) -> Any:
    """Return a tensor's capsule."""
    return tensor.__dlpack__()
