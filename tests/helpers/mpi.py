"""Programs in several processes, by mpiexec, on the two cores that there may be."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
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
