"""Call NumPy without its floating-point warnings: infinities and NaN are ordinary values here.

`np.errstate` around every operation would cost more than a small operation itself.  So each thread
keeps one context in which warnings are off, and runs NumPy's functions in it.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from convcore.engine.runtime.checks import is_too_large


class _Thread(threading.local):
    def __init__(self) -> None:
        context = contextvars.copy_context()
        context.run(np.seterr, all="ignore")
        self.run = context.run


_thread = _Thread()


def ignore_errstate(function: Callable, *args: Any, **kwargs: Any) -> Any:
    """Return ``function(*args, **kwargs)`` without NumPy's floating-point warnings."""
    try:
        return _thread.run(function, *args, **kwargs)
    except ValueError as error:
        if is_too_large(error):
            raise RuntimeError("the result would be larger than any memory") from None
        raise
    except OverflowError as error:  # an int argument of NumPy's
        raise RuntimeError(f"an argument is too large: {error}") from None
    except RuntimeError:  # a finalizer that runs inside another call finds the context in use
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)
