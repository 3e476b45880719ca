"""The parent's end of a worker process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any


class WorkerError(RuntimeError):
    """A command failed in a worker, or the worker ended; the message says which and why."""

    def __init__(self, peer: str, reason: str) -> None:
        super().__init__(f"{peer}: {reason}")
        self.peer = peer


class WorkerProcess:
    """One running worker; a context manager that ends it.

    Parameters
    ----------
    peer : str
        A name of `convcore.bench.peers.PEERS`.
    threads : int
        How many threads it computes with.
    environment : mapping
        Its whole environment.
    """

    def __init__(self, peer: str, threads: int, environment: Mapping[str, str]) -> None:
        self.peer, self.threads = peer, threads
        self.dead: str | None = None
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "convcore.bench.worker", peer, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=dict(environment),
            text=True,
            encoding="utf-8",
            # Out of the terminal's group: Ctrl-C is the parent's, which then ends its workers.
            start_new_session=True,
        )

    def ask(self, command: str, **arguments: Any) -> Any:
        """Send a command, wait for its answer and return the value.

        Raises
        ------
        WorkerError
            The command raised there, or the worker is gone.
        """
        if self.dead is not None:
            raise WorkerError(self.peer, self.dead)
        line = self._exchange(json.dumps({"command": command, "arguments": arguments}) + "\n")
        if not line:
            code = self._process.wait()
            self.dead = f"its worker ended with exit code {code}"
            raise WorkerError(self.peer, self.dead)
        answer = json.loads(line)
        if "error" in answer:
            raise WorkerError(self.peer, answer["error"])
        return answer["value"]

    def _exchange(self, line: str) -> str:
        """Write a line and read one; empty if the worker is gone."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
        except BrokenPipeError:
            return ""
        return self._process.stdout.readline()

    def close(self) -> None:
        """End the worker, whatever it is doing."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()

    def __enter__(self) -> WorkerProcess:
        """Return the worker itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """End the worker."""
        self.close()
