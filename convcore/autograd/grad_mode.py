"""Grad mode: whether operations are recorded, a switch in each thread, and contexts that set it.

A backward pass switches it off too, unless ``create_graph``.
"""

from __future__ import annotations

import functools
import inspect
import threading
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

from convcore._tensor import recording
from convcore.engine.runtime._restoring import Restoring, undo

__all__ = [
    "enable_grad",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "is_multithreading_enabled",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


class _Mode(threading.local):
    """The state of autograd in a thread; recording is on at its start."""

    enabled = True
    inference = False
    ident: int | None = None  # the thread's number, once it was in inference mode
    saved_hooks: tuple = ()  # `saved_tensors_hooks`, the innermost last: autograd/saved.py
    hooks_forbidden: str | None = None  # the error of saved_tensors_hooks, if they are forbidden
    multithreading = True  # what set_multithreading_enabled was called with
    depth = 0  # backward passes that run, each started by a node of the one before
    traversal: Any = None  # the innermost backward pass that runs: autograd/traversal.py


mode = _Mode()
recording.mode = mode


def is_grad_enabled() -> bool:
    """Return whether operations are recorded in this thread."""
    return mode.enabled


def is_inference_mode_enabled() -> bool:
    """Return whether this thread is inside `inference_mode`."""
    return mode.inference


def _ident() -> int:
    """Return the thread's number, which `mode` keeps from here on."""
    if mode.ident is None:
        mode.ident = threading.get_ident()
    return mode.ident


def _marker(inference: bool) -> Callable[[int], None]:
    """Return what notes that a thread is in inference mode, or no more."""
    return recording.inferring.add if inference else recording.inferring.discard


# Calls that set the switch of the thread that makes them: how contexts put it back.
_SET: dict[bool, tuple] = {
    enabled: ((mode.__setattr__, ("enabled", enabled)),) for enabled in (False, True)
}


class Uncalled(type):
    """The type of contexts whose error says so where their parentheses were forgotten.

    What mostly stands between the parentheses is ``_usual`` of the class.
    """

    def __enter__(cls) -> NoReturn:
        name, usual = cls.__name__, getattr(cls, "_usual", "")
        raise TypeError(
            f"the context needs parentheses: with {name}({usual}), got the class {name}"
        )

    def __exit__(cls, *_: Any) -> None:
        """Exist: Python looks for it before it enters."""


class _Context(Restoring, metaclass=Uncalled):
    """A context manager that also decorates functions and generator functions.

    Subclasses set the mode in `_enter`; the mode before is restored at the end.
    """

    def _enter(self) -> None:
        raise NotImplementedError

    def _copy(self) -> _Context:
        return type(self)()

    def _back(self) -> tuple:
        """Return the calls that undo `_enter`."""
        return _SET[mode.enabled]

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
            # Not a `with` block, which would make a context for each call.
            back = self._back()
            try:
                self._enter()
                return function(*args, **kwargs)
            finally:
                undo(back)

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
        context = Restoring.__new__(cls)
        if function is None:
            return context
        context.__init__()  # of exactly this class
        return context(function)

    def __init__(self, function: Callable | None = None) -> None:
        pass

    def _enter(self) -> None:
        mode.enabled = False


class enable_grad(no_grad):
    """Enable recording, also within `no_grad`, as a context manager or a decorator."""

    def _enter(self) -> None:
        mode.enabled = True


class set_grad_enabled(_Context):
    """Enable or disable recording from the call on; as a context manager, until its end."""

    def __init__(self, mode: bool) -> None:
        self.mode = bool(mode)
        self._found = _mode_now().enabled
        _mode_now().enabled = self.mode

    def _enter(self) -> None:
        mode.enabled = self.mode

    def _back(self) -> tuple:
        return _SET[self._found]

    def __call__(self, function: Callable) -> Callable:  # noqa: D102
        mode.enabled = self._found  # a decorator changes nothing where it stands
        return (enable_grad() if self.mode else no_grad())(function)


class set_multithreading_enabled(_Context):
    """Set what `is_multithreading_enabled` returns; as a context manager, until its end.

    Nothing else changes: the backward pass runs in its caller's thread anyway.
    """

    def __init__(self, mode: bool) -> None:
        self.mode = bool(mode)
        self._found = _mode_now().multithreading
        _mode_now().multithreading = self.mode

    def _copy(self) -> set_multithreading_enabled:
        return set_multithreading_enabled(self.mode)

    def _enter(self) -> None:
        mode.multithreading = self.mode

    def _back(self) -> tuple:
        return ((mode.__setattr__, ("multithreading", self._found)),)


def is_multithreading_enabled() -> bool:
    """Return the last value of `set_multithreading_enabled` in this thread; True by default."""
    return mode.multithreading


class inference_mode(_Context):
    """Disable recording, as a context manager or a decorator.

    Tensors made inside are inference tensors: outside they cannot be changed in place, nor require
    or be saved for gradients.  A clone is an ordinary tensor.
    """

    def __new__(cls, mode: bool | Callable = True) -> Any:  # noqa: D102
        context = Restoring.__new__(cls)
        if isinstance(mode, bool):
            return context
        context.__init__()  # of exactly this class
        return context(mode)

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode

    def _copy(self) -> inference_mode:
        return inference_mode(self.mode)

    def _back(self) -> tuple:
        inference = (mode.__setattr__, ("inference", mode.inference))
        return (*super()._back(), (_marker(mode.inference), (_ident(),)), inference)

    def _enter(self) -> None:
        _marker(self.mode)(_ident())
        mode.inference = self.mode
        mode.enabled = not self.mode


def _mode_now() -> _Mode:
    """Return the switch, in functions that have an argument of its name."""
    return mode
