"""Call functions without NumPy's floating-point warnings: infinities and NaN are ordinary values.

`np.errstate` is not used in convcore: it costs more than a small operation, and Ctrl-C at its end
leaves the caller's warnings off.  A context of `contextvars` is left whatever happens.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any

import numpy as np


def _quiet_context() -> contextvars.Context:
    context = contextvars.copy_context()
    context.run(np.seterr, all="ignore")
    return context


class _Thread(threading.local):
    def __init__(self) -> None:
        self.run = _quiet_context().run


_thread = _Thread()


def quiet(function: Callable, *args: Any, **kwargs: Any) -> Any:
    """Return ``function(*args, **kwargs)`` without warnings.

    The function may read no context variable of convcore's or of its caller: the context is made
    once a thread.
    """
    try:
        return _thread.run(function, *args, **kwargs)
    except RuntimeError as error:
        if not str(error).startswith("cannot enter context"):
            raise
    return quiet_copy(function, *args, **kwargs)  # inside another call


def quiet_copy(function: Callable, *args: Any, **kwargs: Any) -> Any:
    """Return ``function(*args, **kwargs)`` without warnings, for any function.

    It sees the caller's context variables; those that it sets are lost.
    """
    return _quiet_context().run(function, *args, **kwargs)
