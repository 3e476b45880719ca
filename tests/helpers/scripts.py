"""The scripts of benchmarks/ and tests/fuzz/ as modules, for the tests of what they compute."""

from __future__ import annotations

import importlib
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
FUZZ = Path(__file__).resolve().parents[1] / "fuzz"


def load_script(monkeypatch: pytest.MonkeyPatch, name: str) -> ModuleType:
    """Return benchmarks/``name``.py, freshly imported; a skip where the tree is not there."""
    if not (FOLDER / f"{name}.py").is_file():
        pytest.skip("the benchmarks are in the source tree only")
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module(name)


def fuzz_script(name: str) -> ModuleType:
    """Return tests/fuzz/``name``.py, freshly run, under a name that no other module has."""
    spec = spec_from_file_location(f"fuzz_{name}", FUZZ / f"{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
