"""The one error of ONNX models that cannot be read, built or exported."""

from __future__ import annotations

import traceback
from typing import Any


class OnnxError(ValueError):
    """An ONNX model is broken, refers to what is not there, or needs what convcore has not.

    The message names the operator, its version and the node where one is at fault.
    """


class _OnnxMemoryError(OnnxError, MemoryError):
    """A node needs more memory than there is."""


def error_of_node(node: str, error: Exception) -> OnnxError:
    """Return the error of a node, described by its operator and name."""
    kind = _OnnxMemoryError if isinstance(error, MemoryError) else OnnxError
    return kind(f"{node}: {str(error) or type(error).__name__}")


def pass_on(error: Exception) -> None:
    """Mark an error that came out of a graph inside a node, and is not the node's own."""
    error.is_passed_on = True  # type: ignore[attr-defined]


def is_own_error(module: Any, error: Exception) -> bool:
    """Return whether the call of a module raised an error in `forward`, and not in a hook."""
    if isinstance(error, RecursionError) or getattr(error, "is_passed_on", False):
        return False
    code = getattr(module.forward, "__code__", None)
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    return code is None or any(
        frame.f_code is code and frame.f_locals.get("self") is module for frame in frames
    )


# What a node raises whose attributes and inputs are not as the standard has them.
FAULTS_OF_NODES = (
    *(ArithmeticError, AttributeError, LookupError, RuntimeError, StopIteration, TypeError),
    *(AssertionError, BufferError, ImportError, MemoryError, OSError, ValueError),
)
