"""The workers of a DataLoader as processes.

Each worker has two lines of its own to the loader: a pipe of tasks and a socket of answers. There
are no locks that a killed worker could leave locked, and a closed line tells that it is gone.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import queue
import signal
import threading
import time
import warnings
from collections.abc import Callable
from multiprocessing import connection
from typing import Any

from convcore.utils.data._utils import MP_STATUS_CHECK_INTERVAL, handover
from convcore.utils.data._utils.worker import Job, seed_process, work


class Processes:
    """Worker processes, and the loader's ends of their lines.

    Parameters
    ----------
    job : Job
    context : multiprocessing context, or None for the default one
    """

    def __init__(self, job: Job, context: Any) -> None:
        self._job, self._context = job, context or multiprocessing.get_context()
        self._owner = os.getpid()
        self.processes: list[Any] = []
        self._tasks: list[Any] = []
        self._answers: list[Any] = []
        self._working: set[int] = set(range(job.n))
        self.broken = False

    def start(self) -> None:
        """Start the workers: apart from their making, so that somebody can close them by then.

        Raises
        ------
        TypeError, AttributeError, pickle.PicklingError
            The context pickles the job, which cannot be pickled.
        """
        try:
            for number in range(self._job.n):
                self._start(number)
        except BaseException:
            self.close()
            raise

    def _start(self, number: int) -> None:
        context = self._context
        tasks_read, tasks = context.Pipe(duplex=False)
        answers, answers_write = context.Pipe()
        args = (tasks_read, answers_write, self._job, number)
        process = context.Process(target=_run, args=args, daemon=True)
        self._tasks.append(tasks)
        self._answers.append(answers)
        try:
            process.start()
            self.processes.append(process)
        except BaseException as error:
            if isinstance(error, (TypeError, AttributeError, pickle.PicklingError)):
                _warn_of_pickling()
            if process.pid is not None:  # interrupted once it ran
                process.terminate()
                process.join(MP_STATUS_CHECK_INTERVAL)
            raise
        finally:
            tasks_read.close()
            answers_write.close()

    def send(self, worker: int, number: int | None, indices: Any) -> None:
        """Send a task; to a worker that is gone, nothing."""
        pickled = pickle.dumps(indices, pickle.HIGHEST_PROTOCOL)
        with contextlib.suppress(OSError):
            self._tasks[worker].send((number, pickled))

    def receive(self, timeout: float | None) -> tuple[int | None, Any] | None:
        """Wait for an answer: the number of a task and its batch; None if there is none in time.

        Raises
        ------
        RuntimeError
            A worker is gone.
        """
        lines = {self._answers[worker]: worker for worker in self._working}
        ends = {self.processes[worker].sentinel: worker for worker in self._working}
        ready = connection.wait([*lines, *ends], timeout)
        for line in ready:
            if line in lines:
                try:
                    return handover.receive(line)
                except (EOFError, ConnectionResetError) as error:
                    self._fail(lines[line], error)
        for end in ready:  # what the worker had sent before is received above
            self._fail(ends[end])
        return None

    def _fail(self, worker: int, error: BaseException | None = None) -> None:
        """Raise the error of a worker that is gone, and end the others."""
        process = self.processes[worker]
        process.join(MP_STATUS_CHECK_INTERVAL)
        gone = [p for p in self.processes if not p.is_alive()] or [process]
        pids = ", ".join(str(process.pid) for process in gone)
        failure = RuntimeError(
            f"DataLoader worker (pid(s) {pids}) exited unexpectedly\n"
            f"Worker {worker} {_end_of(process.exitcode)}."
        )
        self.broken = True
        self.close()
        raise failure from error

    def retire(self, worker: int) -> None:
        """End a worker whose answers nobody waits for."""
        self._working.discard(worker)
        with contextlib.suppress(OSError):
            self._tasks[worker].send(None)

    def close(self) -> None:
        """End the workers: in peace, or after five seconds by a signal."""
        if os.getpid() != self._owner:  # a forked child has no children here
            return
        waiting = set(range(len(self.processes)))
        try:
            for worker in range(len(self.processes)):
                self.retire(worker)
            deadline = time.monotonic() + MP_STATUS_CHECK_INTERVAL
            while waiting and (rest := deadline - time.monotonic()) > 0:
                waiting -= self._drained(waiting, rest)
        finally:  # also if the wait is interrupted
            for worker in waiting:
                self.processes[worker].terminate()
            for process in self.processes:
                process.join(MP_STATUS_CHECK_INTERVAL)
            for line in (*self._tasks, *self._answers):
                line.close()
            self.processes, self._tasks, self._answers = [], [], []
            self._working = set()

    def _drained(self, workers: set[int], timeout: float) -> set[int]:
        """Drop what workers have sent, so that none waits to send more; return those that ended."""
        lines = {self._answers[worker]: worker for worker in workers}
        ends = {self.processes[worker].sentinel: worker for worker in workers}
        ready = connection.wait([*lines, *ends], timeout)
        for line in ready:
            if line in lines:
                try:
                    handover.receive(line)
                except (EOFError, OSError):
                    ends[line] = lines[line]
                except Exception:  # an answer that cannot be read is dropped like the others
                    continue
        return {ends[end] for end in ready if end in ends}


def _warn_of_pickling() -> None:
    warnings.warn(
        "Got pickle error when attempting to start a worker Process. The dataset, collate_fn and "
        "worker_init_fn must be picklable where processes are not forked; "
        "multiprocessing_context='fork' or 'thread' does without.",
        stacklevel=6,
    )


def _end_of(exitcode: int | None) -> str:
    if exitcode is None:
        return "closed its connection"
    if exitcode >= 0:
        return f"exited with code {exitcode}"
    with contextlib.suppress(ValueError):
        return f"was killed by {signal.Signals(-exitcode).name}"
    return f"was killed by signal {-exitcode}"


def _run(tasks: Any, answers: Any, job: Job, number: int) -> None:
    """Run a worker process."""
    try:
        seed_process(job, number)
        work(_End(tasks, answers), job, number, "multiprocessing")
    except (KeyboardInterrupt, BrokenPipeError, ConnectionResetError):
        pass  # the loader's process is interrupted too, or gone


class _End:
    """A worker process's end of its lines.

    A thread reads tasks, so that the loader can always send some. It ends the process when the
    loader's process is gone.
    """

    def __init__(self, tasks: Any, answers: Any) -> None:
        self.closing = False
        self._answers = answers
        self._queue: queue.SimpleQueue = queue.SimpleQueue()
        self._parent = os.getppid()
        threading.Thread(target=self._read, args=(tasks,), daemon=True).start()

    def _is_alone(self) -> bool:
        """Return whether the loader's process is gone, perhaps before this one looked for it."""
        loader = multiprocessing.parent_process()
        return os.getppid() != self._parent or (loader is not None and not loader.is_alive())

    def _read(self, tasks: Any) -> None:
        if self._is_alone():
            os._exit(1)
        while not self.closing:
            try:
                task = tasks.recv() if tasks.poll(MP_STATUS_CHECK_INTERVAL) else "none yet"
            except (EOFError, OSError):
                os._exit(1)
            if task == "none yet":
                if self._is_alone():
                    os._exit(1)
                continue
            self.closing = task is None
            self._queue.put(task)

    def get(self) -> tuple[int | None, Callable[[], Any]] | None:
        task = self._queue.get()
        return None if task is None else (task[0], lambda: pickle.loads(task[1]))

    def put(self, number: int | None, answer: Any) -> None:
        handover.send(self._answers, (number, answer))
