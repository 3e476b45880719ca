"""What was measured becomes pages of the site: each record, and a chart of the nets' ratios."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

RECORDS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def records(monkeypatch):
    monkeypatch.syspath_prepend(RECORDS.parent / "docs" / "_ext")
    return importlib.import_module("records")


def test_every_record_is_a_page_that_starts_with_its_command(records):
    pages = records.pages()
    written = {path.stem for path in RECORDS.glob("*.md")} - {"README"}
    assert written | {"how"} == pages.keys() and written >= {"nets", "results"}
    for name in written:
        command = records.command_of(pages[name])
        assert command.startswith(("convcore ", "python ")), (name, command)


def test_a_new_record_becomes_a_page(records, tmp_path):
    (tmp_path / "new.md").write_text("# New\n\n    convcore bench --new\n")
    pages = records.pages(tmp_path)
    assert list(pages) == ["new"]
    assert records.command_of(pages["new"]) == "convcore bench --new"


def test_ratios_of_nets_are_those_of_the_table(records):
    text = """
## Nets

| net | task | ms | PyTorch / convcore | OpenVINO / convcore |
| --- | --- | --- | --- | --- |
| LeNet | training step | 4.1 | 1.18 (1.1-1.2) |  |
| LeNet | inference | 0.7 | 2.00 (1.9-2.1) | 0.9 (0.8-1.0) |

## Every library and format

| net | task | ms | PyTorch / convcore | OpenVINO / convcore |
| LeNet | inference of one | 0.7 | 9.00 | 0.9 |
"""
    assert records.net_ratios(text) == {
        "training step": {"LeNet": 1.18},
        "inference": {"LeNet": 2.0},
    }


def test_chart_has_every_net(records, tmp_path):
    pytest.importorskip("matplotlib")
    ratios = records.net_ratios(records.pages()["nets"])
    assert ratios and all(len(nets) >= 6 for nets in ratios.values())
    records.draw_nets(ratios, tmp_path / "nets.svg")
    assert (tmp_path / "nets.svg").stat().st_size > 1000
