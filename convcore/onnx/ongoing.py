"""Whether a net is being exported."""

from __future__ import annotations

from contextvars import ContextVar

is_recording = ContextVar("is_recording", default=False)


def is_in_onnx_export() -> bool:
    """Return whether a net is being exported, for code that then takes another way."""
    return is_recording.get()
