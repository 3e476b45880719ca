"""PyTorch's compiler switches: nothing is compiled when a program runs."""

from __future__ import annotations

from typing import Any

from convcore import compile as compile


def disable(fn: Any = None, recursive: bool = True, **options: Any) -> Any:
    """Return a function as it is, or a decorator that does."""
    return fn if fn is not None else lambda function: function


allow_in_graph = assume_constant_result = substitute_in_graph = disable


def is_compiling() -> bool:
    """Return False."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def reset() -> None:
    """Do nothing: nothing is compiled."""


def cudagraph_mark_step_begin() -> None:
    """Do nothing: there are no graphs of CUDA."""
