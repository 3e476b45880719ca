"""The benchmark on a busy machine: its loads end, and its rows hold the slowest trial."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

from convcore.bench import busy
from convcore.bench.busy import QUIET, SPINNING, TRAINING, Load, Row
from convcore.cli import main


def loads() -> int:
    """Return the number of a load's processes that this one has started."""
    listed = subprocess.run(
        ["ps", "--ppid", str(os.getpid()), "-o", "args="], capture_output=True, text=True
    )
    return listed.stdout.count("convcore.bench.busy")


def test_row_has_the_slowest_trial_and_its_slowdown():
    load = Load(SPINNING, 2)
    row = Row("a net", "convcore", {QUIET: [2.0, 3.0], load: [4.0, 9.0, 5.0]})
    assert row.worst(load) == 9.0
    assert row.slowdown(load) == 3.0
    assert row.worst(Load(TRAINING, 1)) is None


@pytest.mark.subprocess
@pytest.mark.skipif(sys.platform == "win32", reason="ps is not there")
@pytest.mark.parametrize("kind", [SPINNING, TRAINING])
def test_load_is_gone_after_an_error(kind, monkeypatch):
    monkeypatch.setattr(busy, "START_SECONDS", 0.1)
    with pytest.raises(KeyboardInterrupt), busy.running(Load(kind, 2), os.environ):
        assert loads() == 2
        raise KeyboardInterrupt
    assert loads() == 0


@pytest.mark.subprocess
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_load_ends_when_its_parent_is_killed():
    program = (
        "import os, subprocess, sys; "
        "p = subprocess.Popen([sys.executable, '-P', '-m', 'convcore.bench.busy', 'busy', '60']); "
        "print(p.pid, flush=True); input()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-P", "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    load = int(parent.stdout.readline())
    time.sleep(2)
    parent.kill()
    parent.communicate()
    for _ in range(100):
        try:
            os.kill(load, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    os.kill(load, 9)
    raise AssertionError("the load went on without the process that started it")


@pytest.mark.subprocess
def test_bench_busy_prints_and_saves_every_load(monkeypatch, tmp_path, capsys):
    pytest.importorskip("rich")
    few = (QUIET, Load(SPINNING, 1))
    monkeypatch.setattr(busy, "LOADS", few)
    monkeypatch.setattr(busy, "WORKLOADS", busy.WORKLOADS[2:3])
    monkeypatch.setattr(busy, "START_SECONDS", 0.1)
    monkeypatch.setattr(busy, "TRIAL_SECONDS", 0.05)
    file = tmp_path / "busy.json"
    assert main(["bench", "--busy", "--quick", "--peers", "none", "--json", str(file)]) == 0
    out = capsys.readouterr().out
    assert "20 convolutions" in out and "1 busy process" in out
    (row,) = json.loads(file.read_text())["rows"]
    assert row["library"] == "convcore"
    assert {name: len(found) for name, found in row["milliseconds"].items()} == {
        "nothing": 1,
        "1 busy process": 1,
    }


def test_bench_busy_refuses_options_of_layers(capsys):
    assert main(["bench", "--busy", "--strict"]) == 2
    assert "--strict is not for --busy" in capsys.readouterr().err
