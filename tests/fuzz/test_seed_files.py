"""What the fuzzers by coverage have found worth keeping, each replayed once."""

import re
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path

import pytest
import world
from scripts import fuzz_script

FOLDER = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def seed_files():
    return fuzz_script("seed_files")


@pytest.mark.subprocess
@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited")
def test_calls_of_the_engine_are_right_or_clear_errors():
    command = [sys.executable, str(FOLDER / "engine_calls.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    calls, functions = map(int, re.search(r"(\d+) calls of (\d+) functions", done.stdout).groups())
    assert calls > 200 and functions == 30


def test_files_are_read_or_refused(seed_files, monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    checkpoints = fuzz_script("checkpoints")
    contents, seen = [*map(checkpoints.framed, seed_files.read("checkpoints"))], Counter()
    for content in checkpoints.seeds():
        checkpoints.check(content)  # what loads lazily is there
    before = world.look()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for content in contents:
            happened, wrong = checkpoints.check(content)
            assert wrong == "", content
            seen[happened] += 1
    assert world.changes(before, world.look()) == []
    assert seen["read"] > 10 and seen["refused"] > 100


def test_inputs_are_kept_and_read_again(seed_files, tmp_path, monkeypatch):
    monkeypatch.setattr(seed_files, "FOLDER", tmp_path / "seeds")
    contents = [b"", b"\0\1", b"other"]
    for number, content in enumerate([*contents, b"other"]):
        (tmp_path / str(number)).write_bytes(content)
    assert seed_files.keep("engine", tmp_path) == 3
    assert sorted(seed_files.read("engine")) == sorted(contents)
    assert seed_files.unpack("engine", ["-runs=1", str(tmp_path / "new")]) == tmp_path / "new"
    assert len([*(tmp_path / "new").iterdir()]) == 3
    assert seed_files.unpack("engine", ["a", "b", "-merge=1"]) is None
    assert sum(map(len, map(seed_files.read, ("engine", "checkpoints")))) == 3


@pytest.mark.parametrize("which", ["engine", "checkpoints"])
def test_kept_inputs_are_few_and_small(seed_files, which):
    assert (FOLDER / "seeds" / f"{which}.zip").stat().st_size < 300_000
