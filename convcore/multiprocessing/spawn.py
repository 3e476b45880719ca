"""spawn: run a function in several processes, and raise what one of them raises."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from multiprocessing import connection
from typing import Any

__all__ = [
    "ProcessContext",
    "ProcessExitedException",
    "ProcessRaisedException",
    "spawn",
    "start_processes",
]

_PATIENCE = 30  # seconds until a process that was asked to end is killed


class ProcessException(Exception):
    """A process failed: its number, its pid, and a message."""

    def __init__(self, msg: str, error_index: int, error_pid: int | None) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.error_pid = error_pid

    def __reduce__(self) -> tuple:
        return type(self), tuple(vars(self).values())


class ProcessRaisedException(ProcessException):
    """The function raised an exception in a process; the message has its traceback."""


class ProcessExitedException(ProcessException):
    """A process exited with a code, or was killed by a signal."""

    def __init__(
        self,
        msg: str,
        error_index: int,
        error_pid: int | None,
        exit_code: int,
        signal_name: str | None = None,
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name


def _run(fn: Callable[..., Any], i: int, args: tuple, error_file: str) -> None:
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass  # the parent is interrupted too
    except Exception:
        with open(error_file, "wb") as file:
            pickle.dump(traceback.format_exc(), file)
        sys.exit(1)


class ProcessContext:
    """Processes that `start_processes` has started.

    Parameters
    ----------
    processes : list of Process
    error_files : list of str
        Where each process leaves the traceback of its exception.
    """

    def __init__(self, processes: list[Any], error_files: list[str]) -> None:
        self.processes = processes
        self.error_files = error_files
        self.sentinels = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """Return the processes' pids."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until some processes have ended, and return whether all have.

        Parameters
        ----------
        timeout : float, optional
            Seconds to wait.
        grace_period : float, optional
            Seconds that the others have to end by themselves where one has failed.

        Raises
        ------
        ProcessRaisedException, ProcessExitedException
            A process has failed; the others are ended.
        """
        if not self.sentinels:
            return True
        for sentinel in connection.wait(self.sentinels.keys(), timeout=timeout):
            number = self.sentinels.pop(sentinel)
            process = self.processes[number]
            process.join()
            if process.exitcode != 0:
                self._end_all(grace_period)
                raise self._failure(number)
        return not self.sentinels

    def _wait_for_all(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        for process in self.processes:
            process.join(max(0, end - time.monotonic()))

    def _end_all(self, grace_period: float | None) -> None:
        if grace_period is not None:
            self._wait_for_all(grace_period)
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        self._wait_for_all(_PATIENCE if grace_period is None else grace_period)
        for process in self.processes:
            if process.is_alive():
                process.kill()
            process.join()

    def _failure(self, number: int) -> ProcessException:
        process = self.processes[number]
        if os.access(self.error_files[number], os.R_OK):
            with open(self.error_files[number], "rb") as file:
                text = pickle.load(file)
            os.unlink(self.error_files[number])
            message = f"\n\n-- Process {number} terminated with the following error:\n{text}"
            return ProcessRaisedException(message, number, process.pid)
        code = process.exitcode
        if code >= 0:
            message = f"process {number} terminated with exit code {code}"
            return ProcessExitedException(message, number, process.pid, code)
        name = f"<Unknown signal {-code}>"
        with contextlib.suppress(ValueError):
            name = signal.Signals(-code).name
        message = f"process {number} terminated with signal {name}"
        return ProcessExitedException(message, number, process.pid, code, name)


def start_processes(
    fn: Callable[..., Any],
    args: tuple = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run ``fn(i, *args)`` in processes i = 0, 1, ...

    Parameters
    ----------
    fn : callable
        Where processes are not forked, a function of a module.
    args : tuple
    nprocs : int
        The number of processes.
    join : bool
        Whether to wait for them; else a `ProcessContext` is returned.
    daemon : bool
        Whether they are ended when this process exits.
    start_method : str
        "spawn", "fork" or "forkserver".

    Raises
    ------
    ProcessRaisedException, ProcessExitedException
        A process has failed; the others are ended.
    """
    context: Any = multiprocessing.get_context(start_method)
    processes, files = [], []
    for i in range(nprocs):
        with tempfile.NamedTemporaryFile(prefix="convcore-error-", suffix=".pickle") as file:
            files.append(file.name)  # the file is gone at the end of the block: it has to be new
        process = context.Process(target=_run, args=(fn, i, args, files[-1]), daemon=daemon)
        process.start()
        processes.append(process)
    started = ProcessContext(processes, files)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: tuple = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run ``fn(i, *args)`` in processes of new interpreters; see `start_processes`."""
    if start_method != "spawn":
        warnings.warn(
            f"This method only supports start_method=spawn (got: {start_method}).\nTo use a "
            "different start_method use:\n\t\t torch.multiprocessing.start_processes(...)",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
