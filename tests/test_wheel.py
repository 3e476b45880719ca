"""The inspector of built wheels (wheels/inspect_wheel.py) finds what it is there to find."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[1]
GOOD = [
    "convcore/__init__.py",
    "convcore/py.typed",
    "convcore/_tensor.pyi",
    "convcore/kernels/_gemm.abi3.so",
    "convcore-0.1.0.dist-info/licenses/LICENSE",
]


@pytest.fixture(scope="module")
def inspector():
    path = CHECKOUT / "wheels" / "inspect_wheel.py"
    spec = importlib.util.spec_from_file_location("inspect_wheel", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def build_module(tmp_path):
    """Return a function that compiles an empty shared library with the given flags."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs a C compiler that makes ELF files")

    def build(*flags):
        source, module = tmp_path / "empty.c", tmp_path / "empty.so"
        source.write_text("int nothing;\n")
        subprocess.run([compiler, "-shared", "-fPIC", *flags, source, "-o", module], check=True)
        return module.read_bytes()

    return build


def test_contents_of_a_good_wheel_pass(inspector):
    assert list(inspector.faults_of_contents(GOOD)) == []


@pytest.mark.parametrize("missing", GOOD[1:])
def test_contents_that_lack_a_file_are_found(inspector, missing):
    names = [name for name in GOOD if name != missing]
    assert len(list(inspector.faults_of_contents(names))) == 1


@pytest.mark.parametrize(
    "extra",
    [
        "convcore/kernels/_gemm.c",
        "convcore/kernels/_gemm.pyx",
        "convcore/tests/test_conv.py",
        "tests/test_conv.py",
        "convcore/kernels/_conv.cpython-311-x86_64-linux-gnu.so",
    ],
)
def test_contents_with_a_file_too_many_are_found(inspector, extra):
    (fault,) = inspector.faults_of_contents([*GOOD, extra])
    assert extra in fault


def test_module_without_traces_of_its_build_passes(inspector, build_module):
    module = build_module("-g0", "-Wl,-rpath,$ORIGIN/../convcore.libs")
    assert list(inspector.faults_of_module("m.so", module)) == []


def test_module_with_debug_information_is_found(inspector, build_module):
    faults = list(inspector.faults_of_module("m.so", build_module("-g")))
    assert faults and all("debug information" in fault for fault in faults)


@pytest.mark.parametrize("kind", ["--enable-new-dtags", "--disable-new-dtags"])
def test_module_with_an_absolute_library_path_is_found(inspector, build_module, kind):
    module = build_module("-g0", f"-Wl,{kind},-rpath,$ORIGIN:/opt/somewhere/lib")
    (fault,) = inspector.faults_of_module("m.so", module)
    assert fault.endswith("/opt/somewhere/lib")
