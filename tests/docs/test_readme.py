"""Commands of the README and of the first page run: the short ones here, the others elsewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import mpi
import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf-8")
FIRST_PAGE = (ROOT / "docs" / "start" / "index.rst").read_text("utf-8")
PROGRAMS = ("bash", "convcore", "mpiexec", "pip", "pytest", "python", "sphinx-build")

SHORT = {
    "convcore",
    "convcore info",
    'convcore plan "8,64,56,56,64,3,1,1,1,1"',
    "convcore summary resnet18",
}
# The tests of the others; "nothing" for commands that take minutes of a quiet machine.
ELSEWHERE = {
    "convcore bench --busy": "tests/bench/test_busy.py",
    "convcore bench --nets": "nothing",
    "convcore bench --quick": ".ci/run",
    "convcore completion": "tests/cli/test_cli.py",
    "convcore demo": "tests/demo/test_demo.py",
    "convcore finetune": "tests/cli/test_finetune.py",
    "convcore run": "tests/compat/test_door.py",
    "convcore run-model": "tests/cli/test_run_model.py",
    "convcore verify": "tests/cli/test_verify.py",
    "convcore watch": "tests/cli/test_watch.py",
    "mpiexec": "tests/docs/test_readme.py",
    "pip install": ".ci/run",
    "pytest": ".ci/run",
    "sphinx-build docs": ".ci/run",
}


def commands():
    """Yield each command in a block of the README, or within a line of it or of the first page."""
    outside = re.sub(r"^```.*?^```$", "", README, flags=re.MULTILINE | re.DOTALL)
    blocks = re.findall(r"^ {4}(\S.*)$", outside, re.MULTILINE)
    inline = re.findall(r"`([^`\n]+)`", outside) + re.findall(r"``([^`\n]+)``", FIRST_PAGE)
    for line in blocks + inline:
        for command in line.split(" && "):
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
    for place in set(ELSEWHERE.values()) - {"nothing"}:
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
