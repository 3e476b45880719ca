"""Call NumPy without its floating-point warnings, and with PyTorch's errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from convcore.engine.runtime.checks import is_too_large
from convcore.engine.runtime.errstate import quiet


def ignore_errstate(function: Callable, *args: Any, **kwargs: Any) -> Any:
    """Return ``function(*args, **kwargs)`` without NumPy's floating-point warnings."""
    try:
        return quiet(function, *args, **kwargs)
    except ValueError as error:
        if is_too_large(error):
            raise RuntimeError("the result would be larger than any memory") from None
        raise
    except OverflowError as error:  # an int argument of NumPy's
        raise RuntimeError(f"an argument is too large: {error}") from None
