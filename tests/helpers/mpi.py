"""Programs in several processes, by mpiexec, on the two cores that there may be."""

from __future__ import annotations

import atexit
import functools
import os
import select
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest

# A line of a process is written at once, so that those of others do not come into it.
SETTINGS = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "PYTHONUNBUFFERED": ""}


def mpiexec() -> str:
    """Return the launcher beside this Python, or on PATH; skip where MPI is not installed."""
    pytest.importorskip("mpi4py")
    found = shutil.which("mpiexec", path=Path(sys.executable).parent) or shutil.which("mpiexec")
    if found is None:
        pytest.skip("could not import 'mpi4py': there is no mpiexec")
    return found


def start(program: str, ranks: int, folder, *arguments: str, **settings: str) -> subprocess.Popen:
    """Start a program in several processes of a thread each."""
    launcher = mpiexec()
    path = Path(folder) / f"program_{abs(hash(program))}.py"
    path.write_text(textwrap.dedent(program), encoding="utf-8")
    return subprocess.Popen(
        [launcher, "-n", str(ranks), sys.executable, "-P", str(path), *arguments],
        env=os.environ | SETTINGS | settings,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(program: str, ranks: int, folder, *arguments: str, **settings: str) -> list[str]:
    """Return the lines that a program prints, sorted; fail where it fails."""
    process = start(program, ranks, folder, *arguments, **settings)
    try:
        printed, errors = process.communicate(timeout=90)
    except subprocess.TimeoutExpired:
        process.terminate()  # mpiexec ends what it started
        process.communicate()
        raise
    assert process.returncode == 0, errors
    return sorted(printed.splitlines())


# Runs a program for each line of a pipe: its path, and the folder that it runs in.
SERVE = """
    import contextlib, io, os, runpy
    import convcore.distributed as dist, convcore.nn, convcore.optim

    dist.init_process_group("mpi")
    rank = dist.get_rank()
    dist.destroy_process_group()
    with open(f"requests_{rank}") as requests, open("replies", "w") as replies:
        here = os.getcwd()
        for path in map(str.strip, requests):
            os.chdir(os.path.dirname(path))
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                runpy.run_path(path, run_name="__main__")
            if dist.is_initialized():
                dist.destroy_process_group()
            os.chdir(here)
            with open(f"printed_{rank}", "w") as file:
                file.write(printed.getvalue())
            print(rank, file=replies, flush=True)
"""


class Ranks:
    """Processes that stay, and run one program after another, each in a group of its own."""

    def __init__(self, count: int) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._path = Path(self._folder.name)
        for name in [f"requests_{rank}" for rank in range(count)] + ["replies"]:
            os.mkfifo(self._path / name)
        self._process = start(SERVE, count, self._path)
        # For both, so that nobody waits for the other side to open it.
        self._requests = [
            os.open(self._path / f"requests_{rank}", os.O_RDWR) for rank in range(count)
        ]
        self._replies = os.open(self._path / "replies", os.O_RDWR)
        atexit.register(self.close)

    def run(self, program: str, folder: Path) -> list[str]:
        """Return the lines that a program prints, sorted; fail where it fails."""
        path = Path(folder) / "program.py"
        path.write_text(textwrap.dedent(program), encoding="utf-8")
        for pipe in self._requests:
            os.write(pipe, f"{path}\n".encode())
        end, answered = time.monotonic() + 90, 0
        while answered < len(self._requests):
            if select.select([self._replies], [], [], 0.2)[0]:
                answered += os.read(self._replies, 4096).count(b"\n")
            elif self._process.poll() is not None or time.monotonic() > end:
                Ranks.of.cache_clear()
                raise AssertionError(self.close())
        printed = [(self._path / f"printed_{rank}").read_text() for rank in range(answered)]
        return sorted("".join(printed).splitlines())

    def close(self) -> str:
        """End the processes; return what they wrote to standard error."""
        atexit.unregister(self.close)
        self._process.terminate()  # mpiexec ends what it started
        errors = self._process.communicate()[1]
        for pipe in (*self._requests, self._replies):
            os.close(pipe)
        self._folder.cleanup()
        return errors

    @staticmethod
    @functools.cache
    def of(count: int) -> Ranks:
        """Return so many processes, the same as long as no program has failed in them."""
        return Ranks(count)


def run_in_shared(program: str, ranks: int, folder: Path) -> list[str]:
    """Do as `run` in processes that other programs ran in: for what needs no fresh ones."""
    mpiexec()
    return Ranks.of(ranks).run(program, folder)
