"""Observation of the graph while it is recorded: a callback for each operation of a thread.

It sees functions, methods, operators and modules alike, each with its inputs and outputs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

from convcore.engine.runtime.restoring import Calls, restoring

# Thread -> callback. It is nearly always empty, and then `record` need not ask further.
observers: dict[int, Callable[[Any, tuple, Any], None]] = {}
# Thread -> the callbacks of the open contexts, by the context, in the order of entry.
_callbacks: dict[int, dict[object, Callable[[Any, tuple, Any], None]]] = {}


@restoring
def observed(callback: Callable[[Any, tuple, Any], None]) -> Iterator[Calls]:
    """Call ``callback(node, inputs, outputs)`` for each operation that this thread records.

    Parameters
    ----------
    callback : callable
        Gets the new node, the inputs as they were given to `record`, and the output or the tuple
        of outputs. Of an operation in place both have the new values. It must keep none of them
        in the node: that would be a cycle.

    Notes
    -----
    Observations nest: the outer callback is called after the inner one. They may end in any order.
    """
    thread = threading.get_ident()
    token = object()
    yield ((_forget, (thread, token)),)
    _callbacks.setdefault(thread, {})[token] = callback
    _install(thread)


@restoring
def unobserved() -> Iterator[Calls]:
    """Hide what this thread records from the observations around, until the block ends."""
    thread = threading.get_ident()
    hidden = _callbacks.get(thread, {})
    yield ((_show, (thread, hidden)),)
    _callbacks[thread] = {}
    _install(thread)


def _show(thread: int, hidden: dict[object, Callable[[Any, tuple, Any], None]]) -> None:
    """Have observations see what a thread records again."""
    _callbacks[thread] = hidden
    _install(thread)


def _forget(thread: int, token: object) -> None:
    """Remove the callback of a context, if it is there."""
    _callbacks.get(thread, {}).pop(token, None)
    _install(thread)


def _install(thread: int) -> None:
    """Have a thread's operations seen by its callbacks, the last one first."""
    callbacks = tuple(_callbacks.get(thread, {}).values())
    if not callbacks:
        observers.pop(thread, None)
        _callbacks.pop(thread, None)
    elif len(callbacks) == 1:
        observers[thread] = callbacks[0]
    else:
        inner_first = callbacks[::-1]

        def each(node: Any, inputs: tuple, outputs: Any) -> None:
            for callback in inner_first:
                callback(node, inputs, outputs)

        observers[thread] = each


def observe(node: Any, inputs: tuple, outputs: Any) -> None:
    """Tell this thread's observer, if it has one, of a node that was recorded."""
    callback = observers.get(threading.get_ident())
    if callback is not None:
        callback(node, inputs, outputs)
