"""Context managers of generator functions, which a signal at no moment leaves half undone."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec

from convcore.engine.runtime._restoring import Restoring, within

# (function, arguments) pairs: see `Restoring`.
Calls = tuple[tuple[Callable[..., Any], tuple], ...]
P = ParamSpec("P")


class Restored(Restoring):
    """A context made by `restoring`; also a decorator, and it may be entered again."""

    def __init__(self, function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> None:
        self._made = function, args, kwargs

    def _back(self) -> Calls:
        function, args, kwargs = self._made
        self._generator = function(*args, **kwargs)
        return next(self._generator)

    def _enter(self) -> Any:
        try:
            next(self._generator)
        except StopIteration as end:
            return end.value
        raise RuntimeError(f"{self._made[0].__qualname__} yields more than once")

    def __call__(self, function: Callable) -> Callable:
        """Return a function that runs inside the context."""

        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            return within(Restored(*self._made), function, args, kwargs)

        return inside


def restoring(function: Callable[P, Iterator[Calls]]) -> Callable[P, Restored]:
    """Make a context manager of a generator function that yields once, before its changes.

    The function yields the calls that will undo its changes, (function, arguments) each, then makes
    the changes and returns what ``with ... as`` gives.  The calls are made at the end of the block,
    or where a change raises or is interrupted: each must also be right if nothing was changed.

    Examples
    --------
    >>> names = {}
    >>> @restoring
    ... def named(name, value):
    ...     yield ((dict.pop, (names, name, None)),)
    ...     names[name] = value
    >>> with named("a", 1):
    ...     names
    {'a': 1}
    >>> names
    {}
    """

    @functools.wraps(function)
    def make(*args: P.args, **kwargs: P.kwargs) -> Restored:
        return Restored(function, args, kwargs)

    return make


@restoring
def together(*contexts: Any) -> Iterator[Calls]:
    """Enter several contexts made by this module or derived from `Restoring`, as one context.

    None of them may read what another one sets.
    """
    yield tuple(call for one in reversed(contexts) for call in one._back())
    for one in contexts:
        one._enter()
