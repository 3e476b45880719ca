"""A subject has the same name everywhere: each module of two rooms has the test file of its name.

`functions/_support/axes.py` is tested in `tests/functions/_support/test_axes.py`, `_bind.py` in
`tests/functions/test_bind.py`.  The folders of engine/conv/ are algorithms: `winograd/plan.py` is
tested in `tests/engine/conv/algorithms/test_winograd.py`, `winograd/tiles.py` in
test_winograd_tiles.py.  The tests of engine/layers/ lie side by side.
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


def homes_of(module: str) -> list[Path]:
    """Return where a module's tests may be."""
    *folders, stem = Path(module).with_suffix("").parts
    stem = stem.removeprefix("_")
    home = TESTS.joinpath(*folders)
    match folders:
        case ["engine", "conv", algorithm]:
            stem = algorithm if stem == "plan" else f"{algorithm}_{stem}"
            home = home.parent / "algorithms"
        case ["engine", "layers", _]:
            home = home.parent
    return [home / f"test_{stem}.py", home / "algorithms" / f"test_{stem}.py"]


def has_tests(file: Path) -> bool:
    """Return whether a file exists and defines a test."""
    return file.exists() and "\ndef test_" in file.read_text(encoding="utf-8")


@pytest.mark.parametrize("room", ["engine", "functions"])
def test_each_module_has_the_test_file_of_its_name(room):
    missing = {m for m in modules(room) if not any(map(has_tests, homes_of(m)))}
    assert not missing


def test_a_file_without_tests_is_missed(tmp_path):
    assert homes_of("functions/_bind.py")[0] == TESTS / "functions" / "test_bind.py"
    file = tmp_path / "test_module.py"
    assert not has_tests(file)
    file.write_text('"""Tests of a module."""\n', encoding="utf-8")
    assert not has_tests(file)
    file.write_text("import math\n\n\ndef test_it():\n    pass\n", encoding="utf-8")
    assert has_tests(file)


def test_scripts_of_the_fuzzers_have_other_names_than_helpers():
    names = [{file.name for file in (TESTS / room).glob("*.py")} for room in ("fuzz", "helpers")]
    assert not names[0] & names[1]  # both folders are on sys.path once a script has run
