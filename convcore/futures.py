"""Futures: values that come later, with functions that wait for them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent import futures
from typing import Any, Generic, TypeVar

from convcore._errors import names as _names
from convcore.engine.runtime.locks import process_lock

__all__ = ["Future", "collect_all", "wait_all"]

_T = TypeVar("_T")


class Future(Generic[_T]):
    """A value that another thread sets, once.

    Parameters
    ----------
    devices : list, optional
        Ignored: values are on the CPU.

    Examples
    --------
    >>> future = Future()
    >>> twice = future.then(lambda done: 2 * done.value())
    >>> future.set_result(3)
    >>> twice.wait()
    6
    """

    def __init__(self, *, devices: Any = None) -> None:
        self._future: futures.Future = futures.Future()
        # Communications that complete it, which no thread moves on: whoever waits does.
        self._sources: list[Any] = []

    def __getstate__(self) -> Any:
        raise RuntimeError("Can not pickle torch.futures.Future")

    def done(self) -> bool:
        """Return whether there is a value or an exception."""
        for source in self._sources:
            source.is_completed()
        return self._future.done()

    def wait(self) -> _T:
        """Wait for the value and return it; an exception that was set is raised."""
        for source in self._sources:
            source.wait()
        return self._future.result()

    def value(self) -> _T:
        """Return the value of a future that is done; an exception that was set is raised.

        Raises
        ------
        RuntimeError
            There is none yet.
        """
        if not self.done():
            raise RuntimeError("Future is not completed: its value can be taken after wait()")
        return self._future.result()

    def then(self, callback: Callable[[Future[_T]], Any]) -> Future[Any]:
        """Return the future of ``callback(self)``, which is called when this future is done.

        An exception in the callback becomes a RuntimeError in the future that is returned.
        """
        following: Future[Any] = Future()
        following._sources = self._sources

        def call(_: Any) -> None:
            try:
                result = callback(self)
            except Exception as error:
                following.set_exception(
                    RuntimeError(
                        "Got the following error when running the callback: "
                        f"{type(error).__name__}: {error}"
                    )
                )
            else:
                following.set_result(result)

        self._future.add_done_callback(call)
        return following

    def add_done_callback(self, callback: Callable[[Future[_T]], None]) -> None:
        """Call ``callback(self)`` when this future is done, at once if it is."""
        self._future.add_done_callback(lambda _: callback(self))

    def set_result(self, result: _T) -> None:
        """Set the value, and call the callbacks.

        Raises
        ------
        RuntimeError
            There is a value already.
        """
        self._complete(self._future.set_result, result)

    def set_exception(self, result: BaseException) -> None:
        """Set an exception, which whoever asks for the value gets, and call the callbacks."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(self._future.set_exception, result)

    def _complete(self, complete: Callable[[Any], None], value: Any) -> None:
        try:
            complete(value)
        except futures.InvalidStateError:
            raise RuntimeError(
                "Attempting to mark a completed Future as complete again. Note that a Future can "
                "only be marked completed once."
            ) from None


def collect_all(futures: list[Future]) -> Future[list[Future]]:
    """Return a future of the list of futures: done when they all are, or one has an exception.

    Raises
    ------
    RuntimeError
        One is None.
    """
    if any(future is None for future in futures):
        raise RuntimeError("Future can't be None")
    whole: Future[list[Future]] = Future()
    whole._sources = [source for future in futures for source in future._sources]
    missing = len(futures)
    lock = process_lock()

    def count(future: Future) -> None:
        nonlocal missing
        error = future._future.exception()
        with lock:
            missing -= 1
            if whole._future.done() or (missing and error is None):
                return
            if error is None:
                whole.set_result(futures)
            else:
                whole._future.set_exception(error)

    for future in futures:
        future.add_done_callback(count)
    if not futures:
        whole.set_result(futures)
    return whole


def wait_all(futures: list[Future]) -> list[Any]:
    """Wait for all futures and return the list of their values; the first exception is raised."""
    return [future.wait() for future in collect_all(futures).wait()]


_names.explain_names(__name__)
