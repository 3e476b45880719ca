"""Memory: the short forms of the scripts beside this file, which say how the long ones are run."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from scripts import fuzz_script

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="/proc says what is resident")
FOLDER = Path(__file__).resolve().parent


def ran(script: str, *options: str) -> subprocess.CompletedProcess:
    command = [sys.executable, str(FOLDER / script), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


@pytest.mark.subprocess
@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc"
    or "LD_PRELOAD" in os.environ
    or shutil.which(os.environ.get("CC", "cc").partition(" ")[0]) is None,
    reason="a library is compiled and preloaded",
)
def test_allocations_that_fail_leave_everything_as_it_was():
    done = ran("memory.py")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    raised, refused = re.search(
        r"([\d,]+) of them a MemoryError; ([\d,]+) calls", done.stdout
    ).groups()
    assert int(raised) >= 200
    assert int(refused) >= 5


@LINUX
@pytest.mark.subprocess
def test_nothing_grows_from_call_to_call():
    done = ran("growth.py", "--iterations=150")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" objects ") == 8  # a line for each program


@LINUX
@pytest.mark.subprocess
@pytest.mark.parametrize("leak", ["tensor", "pool"])
def test_a_leak_of_one_an_iteration_is_found(leak):
    done = ran("growth.py", "--iterations=150", "--only=infer", f"--leak={leak}")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "allowed" in done.stdout


def test_growth_is_compared_after_whole_turns_of_the_shapes():
    growth = fuzz_script("growth")
    for program in growth.PROGRAMS:
        turn = growth.turn(program)
        warm, rest = growth.parts(10_000, turn)
        assert warm + rest == 10_000 and warm >= 1_000 and rest % turn == 0
    sizes = growth.shapes("many_optimized")
    first, *others = (next(sizes) for _ in range(growth.turn("many_optimized") + 1))
    assert others[-1] == first and first not in others[:-1]
    assert growth.parts(150, growth.turn("optimized")) == (15, 135)  # a look
