"""The workers of a DataLoader as threads of one process, which share the dataset.

A worker draws convcore's random numbers from a generator of its own, so that batches do not depend
on which thread is faster.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

from convcore import random
from convcore.utils.data._utils.worker import Job, work

_GONE = object()


class Threads:
    """Worker threads, and the loader's ends of their queues; see `Processes`."""

    broken = False

    def __init__(self, job: Job) -> None:
        self._job = job
        self._answers: queue.SimpleQueue = queue.SimpleQueue()
        self._ends = [_End(self._answers) for _ in range(job.n)]

    def start(self) -> None:
        """Start the workers."""
        for number, end in enumerate(self._ends):
            threading.Thread(
                target=_run,
                args=(end, self._job, number),
                name=f"convcore DataLoader worker {number}",
                daemon=True,
            ).start()

    def send(self, worker: int, number: int | None, indices: Any) -> None:
        """Queue a task."""
        self._ends[worker].tasks.put((number, lambda: indices))

    def receive(self, timeout: float | None) -> tuple[int | None, Any] | None:
        """Wait for an answer, as `Processes.receive` does."""
        try:
            number, answer = self._answers.get(timeout=timeout)
        except queue.Empty:
            return None
        if answer is _GONE:
            self.broken = True
            self.close()
            raise RuntimeError(f"DataLoader worker thread {number} exited unexpectedly")
        return number, answer

    def retire(self, worker: int) -> None:
        """End a worker whose answers nobody waits for."""
        self._ends[worker].closing = True
        self._ends[worker].tasks.put(None)

    def close(self) -> None:
        """Let all workers end, each after the batch that it is at."""
        for worker in range(len(self._ends)):
            self.retire(worker)


class _End:
    """A worker thread's end of its queues."""

    def __init__(self, answers: queue.SimpleQueue) -> None:
        self.closing = False
        self.tasks: queue.SimpleQueue = queue.SimpleQueue()
        self._answers = answers

    def get(self) -> tuple[int | None, Callable[[], Any]] | None:
        return self.tasks.get()

    def put(self, number: int | None, answer: Any) -> None:
        self._answers.put((number, answer))


def _run(end: _End, job: Job, number: int) -> None:
    random.use_own_generator(job.base_seed + number)
    try:
        work(end, job, number, "thread")
    except BaseException:
        end._answers.put((number, _GONE))
        raise
