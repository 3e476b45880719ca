"""Observation of the graph while it is recorded: a callback for each operation of a thread.

It sees functions, methods, operators and modules alike, each with its inputs and outputs.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["observed"]

# Thread -> callback. It is nearly always empty, and then `record` need not ask further.
observers: dict[int, Callable[[Any, tuple, Any], None]] = {}


@contextlib.contextmanager
def observed(callback: Callable[[Any, tuple, Any], None]) -> Iterator[None]:
    """Call ``callback(node, inputs, outputs)`` for each operation that this thread records.

    Parameters
    ----------
    callback : callable
        Gets the new node, the inputs as they were given to `record`, and the output or the tuple
        of outputs. Of an operation in place both have the new values. It must keep none of them
        in the node: that would be a cycle.

    Notes
    -----
    Observations nest: the outer callback is called after the inner one.
    """
    thread = threading.get_ident()
    outer = observers.get(thread)
    if outer is None:
        observers[thread] = callback
    else:

        def both(node: Any, inputs: tuple, outputs: Any) -> None:
            callback(node, inputs, outputs)
            outer(node, inputs, outputs)

        observers[thread] = both
    try:
        yield
    finally:
        if outer is None:
            observers.pop(thread, None)
        else:
            observers[thread] = outer


def observe(node: Any, inputs: tuple, outputs: Any) -> None:
    """Tell this thread's observer, if it has one, of a node that was recorded."""
    callback = observers.get(threading.get_ident())
    if callback is not None:
        callback(node, inputs, outputs)
