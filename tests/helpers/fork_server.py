"""Run Python programs in forks of one interpreter, which has loaded slow modules once.

    with ForkServer("torch") as server:
        done = server.run("-c", "import torch; print(torch.ones(1))")

A fork does what ``python`` does with the same arguments, and ends as it does. What must be tested
in an interpreter that has loaded nothing (imports, settings read by a library as it loads) starts
one by `subprocess`.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import tempfile
import types
import warnings
from collections.abc import Mapping
from pathlib import Path


class ForkServer:
    """A process that forks for each program; started by the first one.

    Parameters
    ----------
    modules : what it imports before it forks, if installed; ``module:function`` is also called
    options : of its interpreter, such as ``-W``, ``ignore``
    """

    def __init__(self, *modules: str, options: tuple[str, ...] = ()) -> None:
        self._command = [sys.executable, *options, __file__, *modules]
        self._process: subprocess.Popen | None = None

    def __enter__(self) -> ForkServer:
        return self

    def __exit__(self, *error: object) -> None:
        if self._process is not None:
            self._process.stdin.close()
            self._process.stdout.close()
            self._process.wait()

    def run(
        self,
        *arguments: object,
        cwd: object = None,
        env: Mapping[str, str] | None = None,
        timeout: float = 300,
    ) -> subprocess.CompletedProcess[str]:
        """Run ``python *arguments``; return the process with its output, whatever its exit code."""
        words = [str(argument) for argument in arguments]
        environment = dict(os.environ if env is None else env)
        if not hasattr(os, "fork"):
            return subprocess.run(
                [sys.executable, *words],
                capture_output=True, text=True, cwd=cwd, env=environment, timeout=timeout,
                check=False,
            )  # fmt: skip
        if self._process is None:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
            )  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            outputs = Path(folder, "stdout"), Path(folder, "stderr")
            request = [words, str(cwd or os.getcwd()), environment, *map(str, outputs)]
            print(json.dumps(request), file=self._process.stdin, flush=True)
            if not select.select([self._process.stdout], [], [], timeout)[0]:
                os.killpg(self._process.pid, signal.SIGKILL)
                self.__exit__()
                self._process = None
                raise subprocess.TimeoutExpired(words, timeout, *(f.read_text() for f in outputs))
            status = self._process.stdout.readline()
            assert status, "the server has ended; its error is on standard error"
            return subprocess.CompletedProcess(
                words, int(status), *(file.read_text() for file in outputs)
            )


def next_program() -> list[str]:
    """Fork for each request on standard input; return the arguments of one, in the fork for it."""
    for line in sys.stdin:
        arguments, folder, environment, *outputs = json.loads(line)
        child = os.fork()
        if not child:
            break
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    else:
        sys.exit()
    for descriptor, path in enumerate((os.devnull, *outputs)):
        opened = os.open(path, os.O_RDWR | os.O_CREAT)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    return arguments


def run(arguments: list[str]) -> None:
    """Run what `python` runs if it is given these arguments."""
    folders = [os.getcwd()]
    while arguments[0] in ("-P", "-W"):
        option = arguments.pop(0)
        if option == "-P":
            folders = []
        else:
            warnings.simplefilter(arguments.pop(0))
    if arguments[0] in ("-c", "-m"):
        option, program = arguments[:2]
        sys.argv = [option, *arguments[2:]]
        sys.path[:0] = folders
        if option == "-m":
            runpy.run_module(program, run_name="__main__", alter_sys=True)
            return
        sys.modules["__main__"] = main = types.ModuleType("__main__")
        exec(compile(program, "<string>", "exec"), vars(main))
        return
    sys.argv = arguments
    sys.path[:0] = folders and [os.path.dirname(os.path.abspath(arguments[0]))]
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        module, _, function = name.partition(":")
        with contextlib.suppress(ModuleNotFoundError):
            loaded = importlib.import_module(module)
            if function:
                getattr(loaded, function)()
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)  # a pool of threads is not forked
    sys.path.remove(str(Path(__file__).parent))
    run(next_program())
