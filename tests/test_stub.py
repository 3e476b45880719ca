"""The stub says what Tensor has; type checkers read it, and the front door, as people use them."""

import importlib.util
import os
import site
import subprocess
import sys
from pathlib import Path

import pytest

import convcore
from convcore._tensor import tensor

PACKAGE = Path(convcore.__file__).parent

TYPED = Path(__file__).parent / "types"


def test_stub_is_what_the_class_has():
    generator = Path(__file__).parents[1] / "wheels" / "tensor_stub.py"
    spec = importlib.util.spec_from_file_location("tensor_stub", generator)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written = Path(tensor.__file__).with_suffix(".pyi").read_text("utf-8")
    assert written == module.stub(), f"not up to date: python {generator}"


@pytest.mark.slow
@pytest.mark.subprocess
def test_programs_have_the_types_that_they_should_have(tmp_path):
    pytest.importorskip("mypy")
    environment = dict(os.environ)
    if str(PACKAGE.parent) not in site.getsitepackages():
        environment["MYPYPATH"] = str(PACKAGE.parent)
    options = ["--follow-imports=silent", "--strict", "--python-version=3.11"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, f"--cache-dir={tmp_path / 'cache'}", TYPED],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert "Success" in done.stdout, done.stdout + done.stderr
