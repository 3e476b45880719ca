"""The examples in docstrings print what they say, in every module of the package."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import convcore

PACKAGE = Path(convcore.__file__).parent


def module_names():
    """Yield the names of the package's Python modules, packages included."""
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        if parts[-1] != "__main__":
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("name", list(module_names()))
def test_docstring_examples_print_what_they_say(name, threads):
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("convcore"):
            raise
        pytest.skip(f"needs {error.name}")
    assert doctest.testmod(module).failed == 0
