"""What programs take from `torch._utils`, a private module."""

from __future__ import annotations

from typing import Any


def _element_size(dtype: Any) -> int:
    """Return the bytes of an element."""
    return dtype.itemsize
