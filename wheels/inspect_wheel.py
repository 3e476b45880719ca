"""Check a built wheel from the outside: `python inspect_wheel.py WHEEL`.

Exit code 1, with a line for each fault, if the wheel's tag is not one that convcore has, if it
lacks something or carries something it should not, or if its modules have debug information or a
library path of the machine that built them. Modules are looked into where they are ELF files
(Linux); other systems' formats are passed over with a line that says so.

A wheel tagged linux_* is for the machine that built it: it has no library, and no list of them.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

LARGEST_BYTES = 4_500_000  # a small download; two thirds of it are kernels
# Every Python since 3.11, or one that is free-threaded; not above what NumPy's own wheels need.
TAG = re.compile(r"-(cp311-abi3|(cp3\d\d)-\2t)-")
NEWEST_GLIBC = 28
# The OpenMP libraries of gcc, LLVM, Intel and Microsoft.
OPENMP = re.compile(r"(^|/)(lib)?(gomp|omp|iomp5|vcomp140)[-.][^/]*$")
DT_STRTAB, DT_RPATH, DT_RUNPATH = 5, 15, 29


def sections(module: bytes) -> dict[str, tuple[int, int, int]]:
    """Map the name of each section of a 64-bit little-endian ELF file to (type, offset, size)."""
    (table,) = struct.unpack_from("<Q", module, 40)
    entry_bytes, count, names_index = struct.unpack_from("<HHH", module, 58)
    entries = [struct.unpack_from("<IIQQQQ", module, table + i * entry_bytes) for i in range(count)]
    names_offset = entries[names_index][4]
    return {
        string_at(module, names_offset + name): (kind, offset, size)
        for name, kind, _, _, offset, size in entries
    }


def string_at(module: bytes, offset: int) -> str:
    """Read the zero-terminated string at an offset."""
    return module[offset : module.index(b"\0", offset)].decode()


def library_paths(module: bytes) -> list[str]:
    """List the folders of a module's RPATH and RUNPATH."""
    found = sections(module)
    strings = found[".dynstr"][1]
    _, offset, size = found[".dynamic"]
    entries = struct.iter_unpack("<QQ", module[offset : offset + size])
    paths = [
        string_at(module, strings + at) for tag, at in entries if tag in (DT_RPATH, DT_RUNPATH)
    ]
    return [folder for path in paths for folder in path.split(":")]


def faults_of_module(name: str, module: bytes) -> Iterator[str]:
    """Yield what is wrong with one compiled module."""
    if module[:6] != b"\x7fELF\x02\x01":
        print(f"{name}: not a 64-bit ELF file, not looked into")
        return
    for section in sections(module):
        if section.startswith((".debug_", ".zdebug_")):
            yield f"{name}: debug information ({section})"
    for folder in library_paths(module):
        if not folder.startswith("$ORIGIN"):
            yield f"{name}: looks for libraries in {folder}"


def faults_of_name(name: str) -> Iterator[str]:
    """Yield what is wrong with a wheel's tags."""
    if not TAG.search(name):
        yield f"{name} is tagged neither cp311-abi3 nor for one free-threaded Python"
    glibc = [int(minor) for minor in re.findall(r"manylinux_2_(\d+)_", name)]
    if glibc and min(glibc) > NEWEST_GLIBC:
        yield f"{name} needs glibc 2.{min(glibc)}, and should do with 2.{NEWEST_GLIBC}"


def faults_of_contents(names: list[str], abi3: bool = True) -> Iterator[str]:
    """Yield what the wheel lacks and what it should not carry."""
    for name in ("convcore/py.typed", "convcore/_tensor/tensor.pyi"):  # what type checkers read
        if name not in names:
            yield f"lacks {name}"
    if not any(re.fullmatch(r"convcore-[^/]+\.dist-info/licenses/LICENSE", name) for name in names):
        yield "lacks the licence"
    modules = [name for name in names if name.endswith((".so", ".pyd"))]
    if not modules:
        yield "has no compiled module"
    for name in names:
        path = PurePosixPath(name)
        if path.suffix in (".c", ".cpp", ".h", ".pyx", ".pxd", ".html"):
            yield f"carries {name}, which only a build needs"
        if {"tests", "benchmarks", "wheels"} & set(path.parts):
            yield f"carries {name}, which is not the package's"
    for name in modules:
        if abi3 and name.endswith(".so") and ".abi3" not in name:
            yield f"{name} is not built for the stable ABI"


def faults_of_libraries(files: dict[str, bytes]) -> Iterator[str]:
    """Yield what is wrong with the libraries that a wheel carries, given what it contains."""
    libraries = [name for name in files if re.search(r"\.libs/|/\.dylibs/", name)]
    runtimes = [name for name in libraries if OPENMP.search(name)]
    if len(runtimes) > 1:
        yield f"carries more than one OpenMP runtime: {' and '.join(runtimes)}"
    texts = b"".join(files[name] for name in files if ".dist-info/licenses/" in name).upper()
    gnu = (b"GNU GENERAL PUBLIC LICENSE", b"GCC RUNTIME LIBRARY EXCEPTION")
    if any("gomp" in name for name in runtimes) and not all(title in texts for title in gnu):
        yield f"carries {runtimes[0]} without its licence and the exception from it"
    lists = [files[name] for name in files if re.search(r"\.dist-info/sboms/[^/]+\.json$", name)]
    listed = {part["name"] for text in lists for part in json.loads(text).get("components", ())}
    if not lists:
        yield "has no list of what it is made of (SBOM)"
    for name in libraries:
        if lists and not any(PurePosixPath(name).name.startswith(part) for part in listed):
            yield f"carries {name}, which its list (SBOM) does not have"
    for name in files:
        if name not in libraries and OPENMP.search(name):
            yield f"carries {name} among its modules"


def faults_of_wheel(path: Path) -> list[str]:
    """List everything that is wrong with a wheel."""
    faults = list(faults_of_name(path.name))
    if path.stat().st_size > LARGEST_BYTES:
        faults.append(f"has {path.stat().st_size} bytes, allowed are {LARGEST_BYTES}")
    with zipfile.ZipFile(path) as wheel:
        files = {name: wheel.read(name) for name in wheel.namelist() if not name.endswith("/")}
    faults += faults_of_contents(list(files), "-abi3-" in path.name)
    if "-linux_" not in path.name:
        faults += faults_of_libraries(files)
    for name, content in files.items():
        if name.endswith((".so", ".pyd")):
            faults += faults_of_module(name, content)
    return faults


def extras(path: Path) -> set[str]:
    """Name the extras that a wheel's metadata have."""
    with zipfile.ZipFile(path) as wheel:
        (name,) = (n for n in wheel.namelist() if n.endswith(".dist-info/METADATA"))
        metadata = wheel.read(name).decode()
    return set(re.findall(r"^Provides-Extra: (\S+)$", metadata, re.MULTILINE))


def describe(path: Path) -> str:
    """Give a wheel's name, size and hash."""
    content = path.read_bytes()
    return f"{path.name}\n{len(content)} bytes, sha256 {hashlib.sha256(content).hexdigest()}"


def main() -> int:
    """Inspect the wheel named on the command line."""
    path = Path(sys.argv[1])
    faults = faults_of_wheel(path)
    for fault in faults:
        print(f"WRONG: {fault}")
    if not faults:
        print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB, nothing wrong")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
