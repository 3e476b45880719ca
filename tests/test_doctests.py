"""The examples in docstrings print what they say, in every module of the package."""

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


def has_examples(module):
    """Return whether there is an example in a module: doctest takes 30 ms to find none."""
    texts = [Path(module.__file__).read_text(encoding="utf-8")]
    # Functions that are made elsewhere, and moved here.
    mine = [v for v in vars(module).values() if getattr(v, "__module__", None) == module.__name__]
    texts += [value.__doc__ for value in mine]
    return any(">>>" in text for text in texts if isinstance(text, str))


def test_modules_with_examples_are_known():
    with_examples, without = (
        ("convcore.functions", "convcore.nn.modules.conv"),
        "convcore._tensor.limits",
    )
    assert all(has_examples(importlib.import_module(name)) for name in with_examples)
    assert not has_examples(importlib.import_module(without))


@pytest.mark.parametrize("name", list(module_names()))
def test_docstring_examples_print_what_they_say(name, threads):
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("convcore"):
            raise
        pytest.skip(f"needs {error.name}")
    assert not has_examples(module) or doctest.testmod(module).failed == 0
