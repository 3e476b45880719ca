"""The short form of the interrupts; `interrupts.py` says how the long one is run."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parent / "interrupts.py"


@pytest.mark.subprocess
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timer's signal")
def test_interrupted_training_leaves_nothing_behind():
    # Where the signal falls is the timer's: what is seldom Python's own must not happen twice.
    for seed in ("--seed=20", "--seed=21"):
        command = [sys.executable, str(SCRIPT), "--count=60", "--plain", seed]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        if done.returncode == 0:
            break
    assert done.returncode == 0, done.stdout + done.stderr
    assert " interrupted" in done.stdout and "60 works: 0 faults" in done.stdout


@pytest.mark.subprocess
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timer's signal")
def test_a_mode_that_is_left_is_a_fault():
    """Of a script that finds nothing one would like to know that it can."""
    program = (
        f"import sys; sys.path.insert(0, {str(SCRIPT.parent)!r})\n"
        "import interrupts\n"
        "forward = interrupts.Works.forward\n"
        "def leave(self):\n"
        "    loss = forward(self)\n"
        "    interrupts.convcore.set_grad_enabled(False)\n"
        "    interrupts.time.sleep(0.05)\n"
        "    interrupts.convcore.set_grad_enabled(True)\n"
        "    return loss\n"
        "interrupts.Works.forward = leave\n"
        "ends, faults = interrupts.run(30, 20)\n"
        "print(faults)"
    )
    command = [sys.executable, "-P", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert "enabled is False, not True" in done.stdout
