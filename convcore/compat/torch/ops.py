"""PyTorch's compiled operators: libraries of them cannot be loaded."""

from __future__ import annotations

from typing import Any, NoReturn

from convcore.compat import errors

loaded_libraries: set[str] = set()


def load_library(path: Any) -> NoReturn:
    """Raise an OSError, which packages with a fallback in Python catch."""
    raise errors.MissingLibraryError(errors.explain("torch.ops.load_library"))
