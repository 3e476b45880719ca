"""benchmarks/cores.py: passes on more cores, modelled from a record of times."""

import json

import pytest
from scripts import load_script

SPEC = "8,256,14,14,256,1"


@pytest.fixture
def cores(monkeypatch):
    return load_script(monkeypatch, "cores")


def record(*threads):
    cell = {"layer": "1x1", "spec": SPEC, "map": "forward", "format": "contiguous"}
    return {
        "cells": [
            cell | {"dtype": "float32", "threads": n, "median_seconds": {"convcore": 0.8 / n}}
            for n in threads
        ]
    }


def test_speed_is_bounded_by_items_and_by_memory(cores):
    (one,) = cores.passes_of(record(1, 2))
    assert one.moved_bytes == 4 * (2 * 8 * 256 * 14 * 14 + 256 * 256) + one.plan.shared_bytes
    fast, most = 1e12, one.plan.items
    assert one.seconds(1, fast, fast) == one.one == 0.8
    assert one.seconds(2, fast, fast) == pytest.approx(0.8 * -(-most // 2) / most, rel=1e-3)
    assert one.seconds(1 << 20, fast, fast) == pytest.approx(0.8 / most, rel=1e-2)
    slow = one.moved_bytes / 0.7  # bytes a second at which memory alone takes 0.7 s
    assert one.seconds(64, slow, slow) == pytest.approx(0.7, rel=1e-2)
    assert one.seconds(64, slow / 4, slow) == pytest.approx(0.7, rel=1e-2)


def test_the_model_is_printed_with_its_test(cores, tmp_path, capsys):
    file = tmp_path / "record.json"
    file.write_text(json.dumps(record(1, 2)))
    assert cores.main([str(file), "--cores", "2,16"]) == 0
    said = capsys.readouterr().out
    assert "Two threads, measured over modelled: 1.0" in said
    assert "16 cores: forward" in said and "work items" in said
    file.write_text(json.dumps(record(2)))
    with pytest.raises(ValueError, match="--threads 1,2"):
        cores.main([str(file)])
