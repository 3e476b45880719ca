"""Code on the site is without comments that only a formatter reads."""

import importlib
from pathlib import Path


def test_comments_for_the_formatter_are_not_shown(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).resolve().parents[2] / "docs" / "_ext")
    shown_code = importlib.import_module("shown_code")
    source = ["net = nn.Sequential(\n    nn.ReLU(),\n)  # fmt: skip\nx = 1  # one\n"]
    shown_code.without_directives(None, "page", source)
    assert source == ["net = nn.Sequential(\n    nn.ReLU(),\n)\nx = 1  # one\n"]
