"""A subject has the same name everywhere: each module of two rooms has the test file of its name.

`functions/_support/axes.py` is tested in `tests/functions/_support/test_axes.py`, `_bind.py` in
`tests/functions/test_bind.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import convcore

TESTS = Path(__file__).resolve().parent
PACKAGE = Path(convcore.__file__).parent


def modules(room: str) -> list[str]:
    """Return the paths inside the package of a room's modules."""
    found = sorted((PACKAGE / room).rglob("*.py"))
    return [file.relative_to(PACKAGE).as_posix() for file in found if file.stem != "__init__"]


def home_of(module: str) -> Path:
    """Return where a module's tests are."""
    file = Path(module)
    return TESTS / file.parent / f"test_{file.stem.removeprefix('_')}.py"


@pytest.mark.parametrize("room", ["engine", "functions"])
def test_each_module_has_the_test_file_of_its_name(room):
    missing = {module for module in modules(room) if not home_of(module).exists()}
    assert not missing


def test_a_file_that_is_not_there_is_missed():
    assert not home_of("functions/_support/no_such_module.py").exists()
    assert home_of("functions/_bind.py") == TESTS / "functions" / "test_bind.py"
