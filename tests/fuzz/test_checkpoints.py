"""The short form of the fuzzer of checkpoints; `checkpoints.py` says how the long one is run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FUZZER = Path(__file__).resolve().parent / "checkpoints.py"


@pytest.mark.subprocess
def test_mutated_checkpoints_are_read_or_refused():
    command = [sys.executable, str(FUZZER), "--count=1500"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1,500 files" in done.stdout and "'read'" in done.stdout and "'refused'" in done.stdout
