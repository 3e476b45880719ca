"""Whether a net is being exported."""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar

from convcore.engine.runtime.restoring import Calls, restoring

is_recording = ContextVar("is_recording", default=False)


def is_in_onnx_export() -> bool:
    """Return whether a net is being exported, for code that then takes another way."""
    return is_recording.get()


@restoring
def exporting() -> Iterator[Calls]:
    """Let `is_in_onnx_export` return True until the block ends."""
    yield ((is_recording.set, (is_recording.get(),)),)
    is_recording.set(True)
