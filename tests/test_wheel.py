"""What judges and completes built wheels (wheels/) finds what it is there to find."""

import hashlib
import importlib.util
import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[1]
GOOD = [
    "convcore/__init__.py",
    "convcore/py.typed",
    "convcore/_tensor/tensor.pyi",
    "convcore/engine/_gemm.abi3.so",
    "convcore-0.1.0.dist-info/licenses/LICENSE",
]


LIBRARY = "convcore.libs/libgomp-0123abcd.so.1.0.0"
INFO = "convcore-0.1.0.dist-info"
# A wheel that carries OpenMP's library, with what belongs to it.
CARRYING = {
    LIBRARY: b"",
    f"{INFO}/licenses/libgomp/GPL-3": b"GNU GENERAL PUBLIC LICENSE",
    f"{INFO}/licenses/libgomp/copyright": b"the GCC Runtime Library Exception",
    f"{INFO}/sboms/convcore.cdx.json": b'{"components": [{"name": "libgomp"}]}',
}


def load(name):
    """Import a script of the folder wheels."""
    spec = importlib.util.spec_from_file_location(name, CHECKOUT / "wheels" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def inspector():
    return load("inspect_wheel")


@pytest.fixture(scope="module")
def repair():
    return load("repair")


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
        "convcore/engine/_gemm.c",
        "convcore/engine/runtime/_gemm.pyx",
        "convcore/tests/test_conv.py",
        "tests/test_conv.py",
        "convcore/engine/_conv.cpython-311-x86_64-linux-gnu.so",
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


@pytest.mark.parametrize(
    "name",
    [
        "convcore-0.1.0-cp311-abi3-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
        "convcore-0.1.0-cp311-abi3-manylinux_2_28_aarch64.whl",
        "convcore-0.1.0-cp314-cp314t-macosx_15_0_arm64.whl",
        "convcore-0.1.0-cp311-abi3-win_arm64.whl",
    ],
)
def test_tags_that_convcore_has_pass(inspector, name):
    assert list(inspector.faults_of_name(name)) == []


@pytest.mark.parametrize(
    "name",
    [
        "convcore-0.1.0-cp312-abi3-manylinux_2_28_x86_64.whl",
        "convcore-0.1.0-cp311-cp311-manylinux_2_28_x86_64.whl",
        "convcore-0.1.0-cp311-abi3-manylinux_2_34_x86_64.whl",
    ],
)
def test_tags_of_too_few_machines_are_found(inspector, name):
    assert len(list(inspector.faults_of_name(name))) == 1


def test_library_with_all_that_belongs_to_it_passes(inspector):
    assert list(inspector.faults_of_libraries(CARRYING)) == []


@pytest.mark.parametrize("missing", list(CARRYING)[1:])
def test_library_without_licence_or_list_is_found(inspector, missing):
    files = {name: content for name, content in CARRYING.items() if name != missing}
    assert len(list(inspector.faults_of_libraries(files))) == 1


def test_library_that_the_list_does_not_have_is_found(inspector):
    (fault,) = inspector.faults_of_libraries({**CARRYING, "convcore.libs/libother-1.so": b""})
    assert "libother" in fault


@pytest.mark.parametrize("second", ["libomp-1.so", "libiomp5.so", "libgomp-2.so.1", "vcomp140.dll"])
def test_second_openmp_runtime_is_found(inspector, second):
    faults = inspector.faults_of_libraries({**CARRYING, f"convcore.libs/{second}": b""})
    assert any("more than one OpenMP runtime" in fault for fault in faults)


@pytest.fixture
def linux_wheel(tmp_path):
    """A wheel as auditwheel leaves it: with a library, but without its licence."""
    path = tmp_path / "convcore-0.1.0-cp311-abi3-manylinux_2_17_x86_64.whl"
    metadata = "Name: convcore\nLicense-Expression: BSD-3-Clause\nLicense-File: LICENSE\n\nText\n"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(LIBRARY, b"code")
        wheel.writestr(f"{INFO}/METADATA", metadata)
        wheel.writestr(f"{INFO}/RECORD", "")
    return path


@pytest.fixture
def completed(linux_wheel, tmp_path, repair, monkeypatch):
    """Return a function that completes the wheel, and gives the new one's path."""
    monkeypatch.setattr(repair, "ROOT", tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    folder = tmp_path / "usr/share/licenses/libgomp"
    folder.mkdir(parents=True)
    (folder / "COPYING3").write_text("GNU GENERAL PUBLIC LICENSE")
    (folder / "COPYING.RUNTIME").write_text("GCC RUNTIME LIBRARY EXCEPTION")

    def complete(name):
        repair.complete(linux_wheel, tmp_path / name)
        return tmp_path / name

    return complete


def test_completed_wheel_has_licence_and_list(completed, inspector):
    with zipfile.ZipFile(completed("new.whl")) as wheel:
        files = {name: wheel.read(name) for name in wheel.namelist()}
    assert list(inspector.faults_of_libraries(files)) == []
    metadata = files[f"{INFO}/METADATA"].decode()
    assert "BSD-3-Clause AND GPL-3.0-or-later WITH GCC-exception-3.1\n" in metadata
    assert "License-File: libgomp/COPYING3\n" in metadata and metadata.endswith("\n\nText\n")
    (part,) = json.loads(files[f"{INFO}/sboms/convcore.cdx.json"])["components"]
    assert part["hashes"][0]["content"] == hashlib.sha256(b"code").hexdigest()
    recorded = {line.split(",")[0] for line in files[f"{INFO}/RECORD"].decode().splitlines()}
    assert recorded == set(files)


def test_completed_wheel_has_the_same_bytes_twice(completed):
    assert completed("a.whl").read_bytes() == completed("b.whl").read_bytes()


def test_library_without_a_licence_to_give_it_is_an_error(completed, tmp_path):
    for text in tmp_path.glob("usr/share/licenses/libgomp/*"):
        text.unlink()
    with pytest.raises(SystemExit, match="no licence of libgomp"):
        completed("new.whl")
