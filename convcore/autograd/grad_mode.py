"""Grad mode: whether operations are recorded, a switch in each thread, and contexts that set it.

A backward pass switches it off too, unless ``create_graph``.
"""

from __future__ import annotations

import functools
import inspect
import threading
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Any

from convcore import _recording

__all__ = [
    "enable_grad",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "set_grad_enabled",
]


class _Mode(threading.local):
    """The state of autograd in a thread; recording is on at its start."""

    enabled = True
    inference = False
    ident: int | None = None  # the thread's number, once it was in inference mode
    saved_hooks: tuple = ()  # (pack, unpack) pairs, the innermost last: autograd/saved.py
    hooks_forbidden: str | None = None  # the error of saved_tensors_hooks, if they are forbidden
    depth = 0  # backward passes that run, each started by a node of the one before
    traversal: Any = None  # the innermost backward pass that runs: autograd/traversal.py


mode = _Mode()
_recording.mode = mode


def is_grad_enabled() -> bool:
    """Return whether operations are recorded in this thread."""
    return mode.enabled


def is_inference_mode_enabled() -> bool:
    """Return whether this thread is inside `inference_mode`."""
    return mode.inference


def _set_inference(inference: bool) -> None:
    """Set the mode; setting it back takes no memory, for a block may end for want of it."""
    if mode.ident is None:
        mode.ident = threading.get_ident()
    if inference:
        _recording.inferring.add(mode.ident)
    else:
        _recording.inferring.discard(mode.ident)
    mode.inference = inference


class _Context:
    """A context manager that also decorates functions and generator functions.

    Subclasses set the mode in `_enter`; the mode before is restored at the end.
    """

    def __init__(self) -> None:
        # (enabled, inference, the same of the entry before): leaving takes no memory.
        self._before: tuple[bool, bool, Any] | None = None

    def _enter(self) -> None:
        raise NotImplementedError

    def _copy(self) -> _Context:
        return type(self)()

    def __enter__(self) -> None:
        self._before = (mode.enabled, mode.inference, self._before)
        try:
            self._enter()
        except MemoryError:
            self.__exit__()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        assert self._before is not None
        mode.enabled, inference, self._before = self._before
        if inference is not mode.inference:
            _set_inference(inference)

    def __call__(self, function: Callable) -> Callable:
        if inspect.isclass(function):
            warnings.warn(
                "Decorating classes is deprecated and will be disabled in future versions. You "
                "should only decorate functions or methods. To preserve the current behavior of "
                "class decoration, you can directly decorate the `__init__` method and nothing "
                "else.",
                FutureWarning,
                stacklevel=2,
            )
        if inspect.isgeneratorfunction(function):
            return self._decorate_generator(function)

        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            # Not a context manager, which Ctrl-C may end before it has put anything back.
            enabled, inference = mode.enabled, mode.inference
            try:
                self._enter()
                return function(*args, **kwargs)
            finally:
                mode.enabled = enabled
                if inference is not mode.inference:
                    _set_inference(inference)

        return inside

    def _decorate_generator(self, function: Callable) -> Callable:
        """Set the mode while the generator runs, but not while its caller does."""

        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            resume, value = generator.send, None
            while True:
                try:
                    with self._copy():
                        item = resume(value)
                except StopIteration as end:
                    return end.value
                try:
                    value = yield item
                    resume = generator.send
                except GeneratorExit:
                    with self._copy():
                        generator.close()
                    raise
                except BaseException as error:
                    resume, value = generator.throw, error

        return inside


class no_grad(_Context):
    """Disable recording, as a context manager or a decorator, with or without parentheses.

    Examples
    --------
    >>> import convcore
    >>> x = convcore.ones(2, requires_grad=True)
    >>> with convcore.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    def __new__(cls, function: Callable | None = None) -> Any:  # noqa: D102
        context = object.__new__(cls)
        if function is None:
            return context
        context.__init__()  # type: ignore[misc]  # of exactly this class
        return context(function)

    def __init__(self, function: Callable | None = None) -> None:
        super().__init__()

    def _enter(self) -> None:
        mode.enabled = False


class enable_grad(no_grad):
    """Enable recording, also within `no_grad`, as a context manager or a decorator."""

    def _enter(self) -> None:
        mode.enabled = True


class set_grad_enabled(_Context):
    """Enable or disable recording from the call on; as a context manager, until its end."""

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self.mode = bool(mode)
        self._found = (_mode_now().enabled, _mode_now().inference)
        _mode_now().enabled = self.mode

    def _enter(self) -> None:
        mode.enabled = self.mode

    def _copy(self) -> set_grad_enabled:
        return set_grad_enabled(self.mode)

    def __enter__(self) -> None:
        try:
            self._before = (*self._found, self._before)
        except MemoryError:
            mode.enabled, mode.inference = self._found
            raise
        mode.enabled = self.mode

    def __call__(self, function: Callable) -> Callable:  # noqa: D102
        mode.enabled, mode.inference = self._found  # a decorator changes nothing where it stands
        return super().__call__(function)


class inference_mode(_Context):
    """Disable recording, as a context manager or a decorator.

    Tensors made inside are inference tensors: outside they cannot be changed in place, nor require
    or be saved for gradients.  A clone is an ordinary tensor.
    """

    def __new__(cls, mode: bool | Callable = True) -> Any:  # noqa: D102
        context = object.__new__(cls)
        if isinstance(mode, bool):
            return context
        context.__init__()  # type: ignore[misc]  # of exactly this class
        return context(mode)

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self.mode = mode

    def _copy(self) -> inference_mode:
        return inference_mode(self.mode)

    def _enter(self) -> None:
        _set_inference(self.mode)
        mode.enabled = not self.mode


def _mode_now() -> _Mode:
    """Return the switch, in functions that have an argument of its name."""
    return mode
