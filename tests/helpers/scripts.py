"""The scripts in the tree's benchmarks folder, as modules, for the tests of what they compute."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


def load_script(monkeypatch: pytest.MonkeyPatch, name: str) -> ModuleType:
    """Return benchmarks/``name``.py, freshly imported; a skip where the tree is not there."""
    if not (FOLDER / f"{name}.py").is_file():
        pytest.skip("the benchmarks are in the source tree only")
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module(name)
