"""What one thread does while it is recorded: functions, backward passes, and named regions."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from time import perf_counter_ns
from typing import Any, NamedTuple

from convcore import overrides
from convcore.autograd.handle import RemovableHandle
from convcore.autograd.observation import observed
from convcore.kernels.runtime._restoring import Restoring, undo
from convcore.kernels.runtime.restoring import Calls, restoring, together
from convcore.optim.optimizer import _global_post_hooks, _global_pre_hooks


class Event(NamedTuple):
    """A call or a region: nanoseconds on the clock, and those that nothing inside of it took."""

    name: str
    kind: str
    start: int
    end: int
    own: int


class _Open:
    """A call that goes on."""

    __slots__ = ("inside", "kind", "name", "start")

    def __init__(self, name: str, kind: str) -> None:
        self.name, self.kind, self.inside = name, kind, 0
        self.start = perf_counter_ns()


_recording: dict[int, Recording] = {}  # by thread


class Recording:
    """The events of one thread, between `start` and `stop`."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._open: list[_Open] = []
        self._thread = 0
        self._undo: Calls = ()

    def start(self) -> None:
        """Begin to record what the thread does.

        Raises
        ------
        RuntimeError
            Another recording goes on in this thread.
        """
        self._thread = threading.get_ident()
        if self._thread in _recording:
            raise RuntimeError("a profile goes on already in this thread")
        watching = together(overrides.watching(self._function), observed(self._node))
        step = RemovableHandle(_global_pre_hooks, extra_dict=_global_post_hooks)
        self._undo = (*watching._back(), (step.remove, ()), (_recording.pop, (self._thread, None)))
        _recording[self._thread] = self
        watching._enter()
        _global_pre_hooks[step.id] = self._enter_step
        _global_post_hooks[step.id] = self._leave_step

    def stop(self) -> None:
        """End it, and what goes on; it may be called again."""
        undo(self._undo)
        self._undo = ()
        while self._open:
            self._close()

    @restoring
    def event(self, name: str, kind: str) -> Iterator[Calls]:
        """Record what is done in the context."""
        entry = _Open(name, kind)
        yield ((self._close_all, (entry,)),)
        self._open.append(entry)

    def _close_all(self, entry: _Open) -> None:
        """End a call, and those inside it that have not ended."""
        while entry in self._open:
            self._close()

    def _enter_step(self, optimizer: Any, args: tuple, kwargs: dict) -> None:
        if threading.get_ident() == self._thread:
            name = f"Optimizer.step#{type(optimizer).__name__}.step"
            self._open.append(_Open(name, "user_annotation"))

    def _leave_step(self, optimizer: Any, args: tuple, kwargs: dict) -> None:
        inside = self._open[-1].name if self._open else ""
        if threading.get_ident() == self._thread and inside.startswith("Optimizer.step#"):
            self._close()

    def _close(self) -> None:
        done, now = self._open[-1], perf_counter_ns()
        taken = now - done.start
        self.events.append(Event(done.name, done.kind, done.start, now, taken - done.inside))
        self._open.pop()
        if self._open:
            self._open[-1].inside += taken

    def _function(self, function: Callable, name: str, args: tuple, kwargs: dict) -> Any:
        name = name.strip("_") if name[-2:] == "__" else name
        with self.event(name if name == "backward" else f"aten::{name}", "cpu_op"):
            return function(*args, **kwargs)

    def _node(self, node: Any, inputs: tuple, outputs: Any) -> None:
        """Have the backward pass of an operation recorded, which was recorded in the graph."""
        if node._backward is not None:
            node._backward = _timed(node._backward, type(node).__name__)


def _timed(backward: Callable, name: str) -> Callable:
    def timed(*args: Any) -> Any:
        with region(name, "cpu_op"):
            return backward(*args)

    return timed


def region(name: str, kind: str) -> Restoring:
    """Return a context that is recorded, if its thread is."""
    found = _recording.get(threading.get_ident())
    return together() if found is None else found.event(name, kind)


class record_function(Restoring, contextlib.ContextDecorator):
    """A context, or a decorator, whose time a profile shows under a name.

    Parameters
    ----------
    name : str
    args : str, optional
        Ignored.
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args

    def _back(self) -> Calls:
        self._region: Any = region(self.name, "user_annotation")
        return self._region._back()

    def _enter(self) -> record_function:
        self._region._enter()
        return self
