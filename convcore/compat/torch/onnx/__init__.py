"""PyTorch's export to ONNX, which is not there: what packages register for it is ignored."""

from __future__ import annotations

from typing import Any


def is_in_onnx_export() -> bool:
    """Return False."""
    return False


def register_custom_op_symbolic(*args: Any, **kwargs: Any) -> None:
    """Ignore how an operator would be exported."""
