"""Worker threads that prefetch batches.

Worker i fetches every n-th batch, from batch i on, and draws random numbers from a generator of its
own, so that the batches do not depend on which thread is faster.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from convcore import random

__all__ = ["WorkerInfo", "Workers", "get_worker_info"]


@dataclass(frozen=True)
class WorkerInfo:
    """A worker's number, the number of workers, its seed, and the dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


class _Current(threading.local):
    info: WorkerInfo | None = None


_current = _Current()


def get_worker_info() -> WorkerInfo | None:
    """Return the calling worker's ``id``, ``num_workers``, ``seed`` and ``dataset``.

    Returns
    -------
    WorkerInfo, or None outside of workers
    """
    return _current.info


class Workers:
    """Threads with a queue of tasks each.

    Parameters
    ----------
    infos : list of WorkerInfo
    make_fetch : callable
        Called in each worker at its first task; returns the function that runs on tasks' arguments.
    begin : callable, optional
        Called in each worker with its number before that.
    """

    def __init__(
        self,
        infos: list[WorkerInfo],
        make_fetch: Callable[[], Callable[[Any], Any]],
        begin: Callable[[int], None] | None,
    ) -> None:
        self._tasks: list[queue.SimpleQueue] = [queue.SimpleQueue() for _ in infos]
        for info, tasks in zip(infos, self._tasks, strict=True):
            threading.Thread(
                target=_work,
                args=(info, tasks, make_fetch, begin),
                name=f"convcore DataLoader worker {info.id}",
                daemon=True,
            ).start()

    def fetch(self, worker: int, argument: Any) -> Future:
        """Queue a task; the future gets the result, or the worker's exception."""
        future: Future = Future()
        self._tasks[worker].put((future, argument))
        return future

    def close(self) -> None:
        """End the threads once their queues are done."""
        for tasks in self._tasks:
            tasks.put(None)


def _work(
    info: WorkerInfo,
    tasks: queue.SimpleQueue,
    make_fetch: Callable[[], Callable[[Any], Any]],
    begin: Callable[[int], None] | None,
) -> None:
    """Run a worker until `Workers.close`."""
    _current.info = info
    random.use_own_generator(info.seed)
    fetch = None
    while (task := tasks.get()) is not None:
        future, argument = task
        try:
            if fetch is None:  # here, so that its errors are raised when batches are taken
                if begin is not None:
                    begin(info.id)
                fetch = make_fetch()
            future.set_result(fetch(argument))
        except BaseException as error:
            error.add_note(f"Raised in DataLoader worker thread {info.id}.")
            future.set_exception(error)
        del task, future, argument  # a waiting worker keeps no batch alive
