"""PyTorch's marks for its profiler: contexts and decorators that change nothing."""

from __future__ import annotations

import contextlib
from typing import Any


class record_function(contextlib.ContextDecorator):
    """A named region of a program; nothing records it.

    Parameters
    ----------
    name : str
    args : str, optional
    """

    def __init__(self, name: str, args: str | None = None):
        self.name, self.args = name, args

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: object) -> None:
        pass
