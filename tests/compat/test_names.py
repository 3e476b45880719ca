"""The lists of PyTorch's names, and what is said of those that convcore has not."""

import fnmatch
import functools
import importlib
import pkgutil
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import convcore
from convcore._errors import missing as errors
from convcore._errors import pytorch as names
from convcore._errors import scope
from convcore.compat import table
from convcore.compat import torch as compat_torch

HELPERS = Path(__file__).parents[1] / "helpers"


def test_the_list_is_that_of_pytorch(torch):
    if not torch.__version__.startswith(names.VERSION):
        pytest.skip(f"the list is of PyTorch {names.VERSION}")
    command = [sys.executable, "-W", "ignore", str(HELPERS / "list_torch_names.py")]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    listed = {m: frozenset(found) for m, *found in map(str.split, printed.stdout.splitlines()[1:])}
    assert listed == names.public()


def test_every_reason_is_used_and_every_pattern_is_of_a_name():
    known = {f"{module}.{name}" for module, found in names.public().items() for name in found}
    known |= names.public()["modules"] | names.public()["private"]
    # By their own names: walking imports packages, and "torch" may be PyTorch's, or nobody's.
    room = compat_torch.__name__
    ours = pkgutil.walk_packages(compat_torch.__path__, f"{room}.")
    known |= {f"{module}.x" for module in known}
    known |= {f"torch{module.name.removeprefix(room)}.x" for module in ours}
    for pattern, key in scope._PATTERNS:
        assert key in scope._REASONS
        assert any(fnmatch.fnmatchcase(name, pattern) for name in known), pattern
    assert {key for _, key in scope._PATTERNS} == set(scope._REASONS)


def test_what_is_not_there_is_explained():
    assert "use device 'cpu'" in str(errors.missing_attribute("torch.cuda", "Stream"))
    missing = errors.missing_attribute("torch.nn", "NoSuchLayer")
    assert isinstance(missing, errors.NotInConvcoreError)
    assert str(missing) == (
        f"torch.nn has no attribute 'NoSuchLayer', neither in convcore nor in PyTorch "
        f"{names.VERSION}"
    )


@pytest.mark.parametrize("name", ["eig", "lstsq", "solve"])
def test_what_pytorch_has_to_name_another_in_linalg_names_it_here(name):
    assert str(errors.missing_attribute("torch", name)) == (
        f"torch.{name} is missing: PyTorch has it, and convcore does not have it yet; use "
        f"torch.linalg.{name}"
    )
    assert str(errors.missing_attribute("torch", "gels")).endswith("'gels'; use torch.linalg.lstsq")
    assert str(errors.missing_module("torch.gels")).endswith("torch.gels; use torch.linalg.lstsq")


def test_nothing_is_denied_of_modules_whose_names_are_not_listed(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch.functional", raising=False)  # PyTorch's, with its names
    flex = "torch.nn.attention.flex_attention"
    for error in (errors.missing_attribute(*flex.rsplit(".", 1)), errors.missing_module(flex)):
        assert str(error).startswith(f"{flex} is missing: PyTorch has it")
    missing = str(errors.missing_attribute("torch.functional", "boolean_dispatch"))
    assert missing == "torch.functional has no attribute 'boolean_dispatch' in convcore"
    missing = str(errors.missing_module("torch.functional.boolean_dispatch"))
    assert missing == "there is no torch.functional.boolean_dispatch in convcore"


def test_every_listed_name_is_there(torch):
    if not torch.__version__.startswith(names.VERSION):
        pytest.skip(f"the list is of PyTorch {names.VERSION}")
    listed = names.public()
    for module in listed.keys() - {"modules", "private"}:
        owner = torch.Tensor if module == "torch.Tensor" else importlib.import_module(module)
        absent = {name for name in listed[module] if not hasattr(owner, name)}
        assert all(find_spec(f"{module}.{name}") for name in absent), (module, absent)


@pytest.mark.subprocess
def test_a_slip_of_the_fingers_is_told_what_was_meant(tmp_path):
    program = """
import torch

def told(ask):
    try:
        ask()
    except Exception as error:
        print(type(error).__name__, error)

def from_nn():
    from torch.nn import Conv2D

told(lambda: torch.nn.Conv2D)
told(from_nn)
told(lambda: torch.cuda.is_avalable())
told(lambda: torch.optim.adam([]))
"""
    file = tmp_path / "slips.py"
    file.write_text(program, "utf-8")
    command = [sys.executable, "-P", "-m", "convcore", "run", str(file)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert ran.stdout.splitlines() == [
        "MissingAttributeError torch.nn has no attribute 'Conv2D': did you mean 'Conv2d'?",
        "MissingModuleError there is no torch.nn.Conv2D: did you mean 'Conv2d'?",
        "MissingAttributeError torch.cuda has no attribute 'is_avalable': did you mean "
        "'is_available'?",
        "TypeError 'module' object is not callable",
    ]


def test_a_module_that_pytorch_imports_only_when_asked_is_known():
    missing = str(errors.missing_module("torch.utils.benchmark"))
    assert "out of scope" in missing and "`convcore bench`" in missing
    assert "neither in convcore nor in PyTorch" in str(errors.missing_module("torch.utils.bench"))


def test_what_to_use_instead_is_there_and_of_a_missing_name():
    missing = {name for module in table.MODULES for name in table.sorted_out(module)["missing"]}
    assert set(scope._INSTEAD) <= missing
    for use in scope._INSTEAD.values():
        for path in re.findall(r"torch(?:\.\w+)+", use):
            assert functools.reduce(getattr, path.split(".")[1:], convcore), path
