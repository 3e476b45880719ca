"""The pages of the API have an entry for every public name."""

import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

import convcore

DOCS = Path(__file__).resolve().parents[2] / "docs"

# Programs, what is compiled, modules that only PyTorch's programs ask for, and what rooms share.
NO_ROOMS = tuple(
    f"convcore.{name}"
    for name in (
        *("bench", "cli", "demo", "verify", "compat.torch"),
        *("engine.layers.optimizers", "engine.runtime.shared", "inspection.table"),
        *("inspection.work", "onnx.backend", "onnx.operators", "onnx.translations"),
        *("serialization.replacing", "utils.tensorboard"),
    )
)
# Functions get `out=` in these rooms, and are others then than in the module that defines them.
FUNCTIONS = ("convcore", "convcore.linalg", "convcore.special")


@pytest.fixture
def api_pages(monkeypatch):
    monkeypatch.syspath_prepend(DOCS / "_ext")
    return importlib.import_module("api_pages")


@pytest.fixture
def entries(api_pages):
    """(room, name) of every entry."""
    return {
        (section.room, name)
        for its in api_pages.sections().values()
        for section in its
        for name in section.names
    }


def public_modules():
    """Yield every module that lists its public names."""
    yield convcore.__name__
    for found in pkgutil.walk_packages(convcore.__path__, "convcore."):
        private = any(part.startswith("_") for part in found.name.split("."))
        if not private and not found.name.startswith(NO_ROOMS):
            module = importlib.import_module(found.name)
            if hasattr(module, "__all__"):
                yield found.name


def is_shown(module, name, entries, shown):
    """Return whether a name of a module has an entry, in that module or in a room that has it."""
    if module.startswith("convcore.functions") and any((r, name) in entries for r in FUNCTIONS):
        return True
    if f"{module}.{name}" in {room for room, _ in entries}:  # a module that is a room itself
        return True
    return (name, identity(module, name)) in shown


def identity(module, name):
    """Return what a name of a module is; its wrapper, once calls were intercepted, is the same."""
    return id(inspect.unwrap(getattr(importlib.import_module(module), name)))


def test_every_public_name_stands_on_a_page(entries):
    shown = {(name, identity(room, name)) for room, name in entries}
    missing = [
        f"{module}.{name}"
        for module in public_modules()
        for name in getattr(importlib.import_module(module), "__all__", dir(convcore))
        if not name.startswith("_") and not is_shown(module, name, entries, shown)
    ]
    assert missing == []


def test_a_name_without_an_entry_is_missed(entries):
    assert not is_shown("convcore.nn", "Conv2d", entries - {("convcore.nn", "Conv2d")}, set())


def test_every_method_of_tensor_has_an_entry(api_pages):
    page = api_pages.tensor_page()
    tensor = convcore.ones(1)  # whose names are those that are here
    names = [name for name in dir(tensor) if not name.startswith("_")]
    assert [name for name in names if f":: convcore.Tensor.{name}" not in page] == []


def test_every_page_is_in_the_table_of_contents(api_pages):
    contents = (DOCS / "api" / "index.rst").read_text().split()
    pages = {f"generated/{name}" for name in (*api_pages.sections(), "tensor")}
    assert pages == {word for word in contents if word.startswith("generated/")}


@pytest.mark.parametrize(
    ("line", "prepared"),
    [
        (
            "(N, C, *sizes) of `normal_`, |x| and fill_",
            r"(N, C, \*sizes) of `normal_`, \|x\| and fill\_",
        ),
        ("x**2 + y**2 is **not safe**", r"x\*\*2 + y\*\*2 is **not safe**"),
        ("* a list's star, and ``a * b``", "* a list's star, and ``a * b``"),
        (">>> 2 * 3", ">>> 2 * 3"),
    ],
)
def test_signs_of_plain_text_are_themselves_and_code_is_left_alone(api_pages, line, prepared):
    lines = [line]
    importlib.import_module("docstrings").prepare(None, "", "", None, None, lines)
    assert lines == [prepared]


def test_lines_indented_after_a_colon_are_code(api_pages):
    lines = ["Set it:", "", "    a = b * c", "", "and a * b."]
    importlib.import_module("docstrings").prepare(None, "", "", None, None, lines)
    assert lines == ["Set it::", "", "    a = b * c", "", r"and a \* b."]


def test_names_that_a_script_uses_are_found_under_their_full_names(api_pages):
    script = """
import numpy as np
import convcore as torch
from convcore import nn
from convcore.nn import functional as F
x = F.relu(nn.Linear(2, 1)(torch.ones(1, 2))).sum()
np.ones(3)
"""
    expected = {"nn", "nn.functional", "nn.functional.relu", "nn.Linear", "ones"}
    assert api_pages.names_used(script) == {f"convcore.{name}" for name in expected}


def test_classes_are_shown_with_the_arguments_of_their_constructor(api_pages):
    conv = convcore.nn.Conv2d
    shown, _ = api_pages.class_signature(None, "class", "", conv, {}, "(*args, **kwargs)", None)
    assert shown.startswith("(in_channels, out_channels, kernel_size, stride=1")
    assert api_pages.class_signature(None, "class", "", dict, {}, "(iterable)", None) is None


def test_what_tensors_have_not_is_no_entry(api_pages):
    page = api_pages.tensor_page()
    assert "Tensor.row_indices" not in page and "convcore.Tensor.reshape" in page
