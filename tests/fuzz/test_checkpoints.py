"""The short form of the fuzzer of checkpoints; `checkpoints.py` says how the long one is run."""

import collections
import copyreg
import inspect
import subprocess
import sys
from pathlib import Path

import pytest
import world

import convcore

FUZZER = Path(__file__).resolve().parent / "checkpoints.py"


@pytest.mark.subprocess
@pytest.mark.parametrize("kind", ["torch", "safetensors", "npz"])
def test_mutated_checkpoints_are_read_or_refused(kind):
    if kind == "safetensors":
        pytest.importorskip("safetensors", reason="needs safetensors")
    command = [sys.executable, str(FUZZER), "--count=1500", f"--format={kind}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1,500 files" in done.stdout and "'read'" in done.stdout and "'refused'" in done.stdout


CHANGED = [
    (convcore.float32, "numpy"),
    (convcore.Size, "numel"),
    (collections.Counter, "update"),
    (convcore.Tensor, "_array"),
    (convcore.load, "__kwdefaults__"),
    (inspect.unwrap(convcore.save), "__defaults__"),
    (copyreg, "_extension_registry"),
]


def test_a_look_at_the_world_sees_what_was_changed(monkeypatch):
    convcore.equal(convcore.ones(1), convcore.ones(1))  # what loads lazily is there
    before = world.look()
    for where, name in CHANGED:
        with monkeypatch.context() as patch:
            patch.setattr(where, name, None)
            after = world.look()
        found = world.changes(before, after)
        assert any(name.strip("_") in path for path in found), (where, name)
    assert world.changes(before, world.look()) == []
