"""Make a Linux wheel carry its OpenMP runtime, that runtime's licence, and a list of both.

`python wheels/repair.py WHEEL FOLDER` has auditwheel copy the compiler's OpenMP library into the
wheel, and adds what auditwheel leaves out: the library's licence texts (GPL-3.0-or-later with the
exception that lets programs of any licence use it), the licence in the metadata, and a CycloneDX
list of what the wheel is made of. The same wheel gives the same bytes: SOURCE_DATE_EPOCH dates it.

CONVCORE_LIBRARIES names a root directory to take the library and its texts from, when the
system's own is too new for other systems or is for another processor.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(os.environ.get("CONVCORE_LIBRARIES", "/"))
# Where systems keep the texts: Red Hat's family in a folder of the package, Debian's in two files.
TEXTS = (
    "usr/share/licenses/libgomp/COPYING*",
    "usr/share/doc/gcc-*-base/copyright",
    "usr/share/common-licenses/GPL-3",
)
LICENCE = "GPL-3.0-or-later WITH GCC-exception-3.1"


def grafted(wheel: Path, folder: Path) -> Path:
    """Have auditwheel copy foreign libraries into the wheel; return the new wheel's path."""
    command = ["auditwheel", "repair", "--plat", "auto", "--wheel-dir", str(folder), str(wheel)]
    if Path("/") != ROOT:
        found = [str(path.parent) for path in ROOT.glob("usr/lib/*/libgomp.so.1")]
        command[2:2] = ["--ldpaths", ":".join(found)]
    subprocess.run(command, check=True)
    (repaired,) = folder.glob("*.whl")
    return repaired


def licence_texts() -> dict[str, bytes]:
    """Read the OpenMP library's licence texts, under the names that they get in the wheel."""
    texts = {
        f"libgomp/{path.name}": path.read_bytes()
        for pattern in TEXTS
        for path in sorted(ROOT.glob(pattern))
    }
    if not any(b"RUNTIME LIBRARY EXCEPTION" in text.upper() for text in texts.values()):
        sys.exit(f"repair.py: under {ROOT} there is no licence of libgomp: {' or '.join(TEXTS)}")
    return texts


def with_licence(metadata: bytes, names: list[str]) -> bytes:
    """Add the library's licence, and its files, to a wheel's METADATA."""
    head, blank, description = metadata.partition(b"\n\n")
    lines = head.decode().split("\n")
    at = next(i for i, line in enumerate(lines) if line.startswith("License-Expression: "))
    lines[at] += f" AND {LICENCE}"
    last = max(i for i, line in enumerate(lines) if line.startswith("License-File: "))
    lines[last + 1 : last + 1] = [f"License-File: {name}" for name in names]
    return "\n".join(lines).encode() + blank + description


def bill_of_materials(name: str, version: str, libraries: Mapping[str, bytes]) -> bytes:
    """List the package and the libraries that it carries: CycloneDX 1.6, without dates."""
    purl = f"pkg:pypi/{name}@{version}"
    parts = [
        {
            "type": "library",
            "bom-ref": library,
            "name": library.partition("-")[0],
            "licenses": [{"expression": LICENCE}],
            "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(content).hexdigest()}],
            "evidence": {"occurrences": [{"location": f"{name}.libs/{library}"}]},
        }
        for library, content in libraries.items()
    ]
    package = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    depends = [{"ref": purl, "dependsOn": list(libraries)}]
    bom = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1}
    bom |= {"metadata": {"component": package}, "components": parts, "dependencies": depends}
    return json.dumps(bom, indent=1).encode() + b"\n"


def record_lines(files: Mapping[str, bytes], record: str) -> Iterator[str]:
    """Yield the lines of a wheel's RECORD: name, hash, size."""
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        yield f"{name},sha256={digest},{len(content)}\n"
    yield f"{record},,\n"


def write_wheel(path: Path, files: Mapping[str, bytes]) -> None:
    """Write a wheel in the order given, every file of the same date."""
    seconds = max(int(os.environ.get("SOURCE_DATE_EPOCH", time.time())), 315532800)  # zip: 1980 on
    with zipfile.ZipFile(path, "w", compresslevel=9) as wheel:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, time.gmtime(seconds)[:6])
            executable = ".so" in Path(name).name
            entry.external_attr = (0o100755 if executable else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, content, compresslevel=9)


def complete(source: Path, target: Path) -> None:
    """Copy a wheel, adding licence texts, licence and list for the libraries that it carries."""
    with zipfile.ZipFile(source) as wheel:
        files = {n: wheel.read(n) for n in wheel.namelist() if not n.endswith("/")}
    info = next(name for name in files if name.endswith(".dist-info/METADATA")).partition("/")[0]
    package, version = info.removesuffix(".dist-info").split("-")
    libraries = {
        Path(name).name: content
        for name, content in files.items()
        if name.startswith(f"{package}.libs/")
    }
    record = f"{info}/RECORD"
    del files[record]
    if libraries:
        texts = licence_texts()
        metadata = f"{info}/METADATA"
        files[metadata] = with_licence(files[metadata], list(texts))
        files |= {f"{info}/licenses/{name}": text for name, text in texts.items()}
    bom = bill_of_materials(package, version, libraries)
    files[f"{info}/sboms/{package}.cdx.json"] = bom
    files[record] = "".join(record_lines(files, record)).encode()
    write_wheel(target, files)


def main() -> None:
    wheel, folder = Path(sys.argv[1]), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        repaired = grafted(wheel, Path(scratch))
        complete(repaired, folder / repaired.name)
    print(f"{repaired.name} carries its libraries, their licences and a list of them")


if __name__ == "__main__":
    main()
