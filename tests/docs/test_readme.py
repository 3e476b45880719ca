"""The README's commands run: the short ones here as they stand there, the others where it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import mpi
import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "README.md").read_text("utf-8")
PROGRAMS = ("bash", "convcore", "mpiexec", "pip", "pytest", "python", "sphinx-build")

SHORT = {
    "convcore",
    "convcore info",
    'convcore plan "8,64,56,56,64,3,1,1,1,1"',
    "convcore summary resnet18",
}
# What runs the others; "nothing" for what takes minutes of a quiet machine.
ELSEWHERE = {
    "bash .ci/run": "CI itself",
    "convcore bench --busy": "tests/bench/test_busy.py",
    "convcore bench --nets": "nothing",
    "convcore bench --quick": ".ci/run",
    "convcore bench --suite overhead": ".ci/run",
    "convcore demo": "tests/demo/test_demo.py",
    "convcore run": "tests/compat/test_door.py",
    "convcore run-model": "tests/cli/test_run_model.py",
    "convcore verify": "tests/cli/test_verify.py",
    "convcore watch": "tests/cli/test_watch.py",
    "mpiexec": "tests/docs/test_readme.py",
    "pip install": ".ci/run",
    "pip wheel": ".ci/run",
    "pytest": ".ci/run",
    "python benchmarks/memory.py": ".ci/run",
    "python tests/fuzz/": "tests/fuzz/test_checkpoints.py",
    "sphinx-build docs": ".ci/run",
}


def commands():
    """Yield each command of the README, of a block of commands or within a line."""
    outside = re.sub(r"^```.*?^```$", "", TEXT, flags=re.MULTILINE | re.DOTALL)
    shown = re.findall(r"`([^`\n]+)`|^ {4}(\S.*)$", outside, re.MULTILINE)
    for inline, block in shown:
        for command in (inline or block).split(" && "):
            if command.split()[0] in PROGRAMS:
                yield command


def run(command, folder, **settings):
    """Run a command in a shell in which this Python's programs come first."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=os.environ | {"PATH": path} | settings,
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_every_command_is_run_somewhere():
    found = set(commands())
    others = {
        command: max((start for start in ELSEWHERE if command.startswith(start)), key=len)
        for command in found - SHORT
    }
    assert found >= SHORT
    assert set(others.values()) == set(ELSEWHERE)
    for place in set(ELSEWHERE.values()) - {"nothing", "CI itself"}:
        assert (ROOT / place).exists() or place == ".ci/run", place  # a wheel's tests lack .ci


@pytest.mark.subprocess
@pytest.mark.parametrize("command", sorted(SHORT))
def test_short_commands_run(command, tmp_path):
    done = run(command, tmp_path)
    assert done.returncode == 0 and done.stdout and not done.stderr, done.stderr


@pytest.mark.slow
@pytest.mark.subprocess
def test_training_in_two_processes_runs_as_it_stands_there(tmp_path):
    mpi.mpiexec()
    (command,) = (one for one in commands() if one.startswith("mpiexec"))
    done = run(command, tmp_path, **mpi.SETTINGS)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^patches: SHA-256 of the weights \w{64}$", done.stdout, re.MULTILINE)
