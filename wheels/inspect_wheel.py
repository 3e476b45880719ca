"""Check a built wheel from the outside: `python inspect_wheel.py WHEEL`.

Exit code 1, with a line for each fault, if the wheel is not for every Python since 3.11, lacks
something, carries something it should not, or has modules with debug information or with a library
path of the machine that built them. Modules are looked into where they are ELF files (Linux);
other systems' formats are passed over with a line that says so.
"""

from __future__ import annotations

import re
import struct
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

LARGEST_BYTES = 3_000_000
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


def faults_of_contents(names: list[str]) -> Iterator[str]:
    """Yield what the wheel lacks and what it should not carry."""
    for name in ("convcore/py.typed", "convcore/_tensor.pyi"):  # what type checkers read
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
        if name.endswith(".so") and ".abi3" not in name:
            yield f"{name} is not built for the stable ABI"


def faults_of_wheel(path: Path) -> list[str]:
    """List everything that is wrong with a wheel."""
    faults = []
    if "-cp311-abi3-" not in path.name:
        faults.append(f"{path.name} is not tagged cp311-abi3")
    if path.stat().st_size > LARGEST_BYTES:
        faults.append(f"has {path.stat().st_size} bytes, allowed are {LARGEST_BYTES}")
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        faults += faults_of_contents(names)
        for name in names:
            if name.endswith((".so", ".pyd")):
                faults += faults_of_module(name, wheel.read(name))
    return faults


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
