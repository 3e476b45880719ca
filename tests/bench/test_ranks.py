"""benchmarks/ranks.py: its columns, and a run of two ranks."""

import subprocess
import sys

import mpi
import pytest
from scripts import load_script


def test_columns_are_of_the_shortest_steps(monkeypatch):
    best = {
        (1, 1, 1): {"step": 1.0},
        (2, 1, 1): {"step": 1.25, "computing": 1.05, "overlap": 0.25},
        (1, 2, 2): {"step": 1.5},
    }
    row = load_script(monkeypatch, "ranks").row
    assert row((2, 1, 1), best) == ["1250.0", "1.60", "80%", "95%", "25%", "1.20"]
    assert row((1, 2, 2), best) == ["1500.0", "1.33"]


@pytest.mark.subprocess
def test_two_ranks_are_measured(monkeypatch):
    mpi.mpiexec()
    script = load_script(monkeypatch, "ranks").__file__
    command = [sys.executable, script, "--nets", "lenet", "--ranks", "2", "--rounds", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    assert [len(line.split()) for line in done.stdout.splitlines()] == [10, 7, 11, 7]
