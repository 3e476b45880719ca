"""Clean environments to install a wheel in: every Python that can be had, emulated CPUs too."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

WHEELS = Path(__file__).resolve().parent
CACHE = WHEELS / ".cache"
VERSIONS = ("3.11", "3.12", "3.13", "3.14", "3.15")
# The oldest releases that the metadata allow; they have wheels for 3.11.
OLDEST = ("numpy==2.0.0", "scipy==1.14.0", "threadpoolctl==3.5.0")
# What a processor has to have for each level.
LEVELS = {
    "base": set(),
    "avx2": {"avx2", "fma"},
    "avx512": {"avx2", "avx512f", "avx512dq", "avx512bw", "avx512vl"},
}
# Processors that qemu imitates, and their levels: one without AVX, one without AVX-512. What qemu
# cannot imitate of the second is taken from it, or each start would say so.
EMULATED = {
    "Nehalem": ["base"],
    "Haswell-noTSX,-pcid,-x2apic,-tsc-deadline,-invpcid": ["base", "avx2"],
}
# Variables that change what is loaded, or which kernel runs.
FORBIDDEN = re.compile(r"PYTHON|OPENBLAS_|OMP_|CONVCORE_|LD_")


@dataclass(frozen=True)
class Environment:
    """A Python that a wheel is installed for, and how it is started."""

    name: str
    command: tuple[str, ...]  # starts the interpreter
    variables: dict[str, str]  # set for it
    levels: list[str]  # the instruction sets that it has to find
    emulated: bool = False

    def run(self, *arguments: str, folder: Path, **variables: str) -> subprocess.CompletedProcess:
        """Run the interpreter in a folder; what it prints comes back as text."""
        clean = {k: v for k, v in os.environ.items() if not FORBIDDEN.match(k)}
        return subprocess.run(
            [*self.command, *arguments],
            cwd=folder,
            env=clean | self.variables | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


def host_levels() -> list[str]:
    """List the levels of this machine's processor, as Linux describes it."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return ["base"]
    described = Path("/proc/cpuinfo")
    flags = set(described.read_text().split()) if described.exists() else set()
    return [level for level, needed in LEVELS.items() if needed <= flags]


def find_python(version: str) -> str | None:
    """Find an interpreter of a version: on PATH, pyenv's, or one that wheels/pythons unpacked."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates = [f"python{version}", *map(str, pyenv.glob(f"versions/{version}.*/bin/python"))]
    candidates.append(str(CACHE / f"pythons-amd64/usr/bin/python{version}"))
    for candidate in candidates:
        try:
            asked = [candidate, "-c", "import venv, sys; print('%d.%d' % sys.version_info[:2])"]
            if subprocess.check_output(asked, text=True, stderr=subprocess.PIPE).strip() == version:
                return candidate
        except (OSError, subprocess.CalledProcessError):
            continue
    return None


def pip(*arguments: str) -> None:
    """Run the tools' pip, which is new enough for every Python; exit with its words if it fails."""
    command = [str(CACHE / "tools/bin/pip"), "--quiet", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise RuntimeError(f"pip {' '.join(arguments)} failed:\n{done.stdout}")


def pip_into(environment: Environment, *requirements: str) -> None:
    """Install more into a virtual environment of this machine."""
    pip("--python", environment.command[0], "install", "--only-binary", ":all:", *requirements)


def native(
    version: str, python: str, requirements: list[str], folder: Path, name: str = ""
) -> Environment:
    """Install what is required into a fresh virtual environment of a Python of this machine."""
    subprocess.run([python, "-m", "venv", "--without-pip", str(folder)], check=True)
    interpreter = str(folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python"))
    made = Environment(name or f"Python {version}", (interpreter, "-P"), {}, host_levels())
    pip_into(made, *requirements)
    return made


def emulated(environment: Environment) -> Iterator[Environment]:
    """Yield an x86-64 environment on processors that are not here."""
    qemu = shutil.which("qemu-x86_64-static")
    for processor, levels in EMULATED.items() if qemu else ():
        yield replace(
            environment,
            name=f"{environment.name} on {re.match('[A-Za-z]+', processor)[0]} (qemu)",
            command=(qemu, "-cpu", processor, *environment.command),
            levels=levels,
            emulated=True,
        )


def arm(version: str, requirements: list[str], folder: Path) -> Environment | None:
    """Unpack what is required for a Python of 64-bit Arm, which qemu runs here.

    On the most that qemu can imitate, OpenBLAS takes its kernel for SME, which gives wrong products
    there; nothing of convcore's uses more than a Cortex-A72 has.
    """
    qemu = shutil.which("qemu-aarch64-static")
    roots = [CACHE / f"pythons-arm64-{version}", CACHE / "pythons-arm64"]
    root = next((r for r in roots if (r / f"usr/bin/python{version}").exists()), None)
    if not (qemu and root):
        return None
    digits = version.replace(".", "")
    tags = [f"--platform=manylinux_2_{minor}_aarch64" for minor in (17, 24, 26, 27, 28)]
    abis = [f"--abi=cp{digits}", "--abi=abi3", "--abi=none"]
    chosen = ["--python-version", version, "--only-binary", ":all:", *tags, *abis]
    pip("install", "--target", str(folder), *chosen, *requirements)
    python = str(root / f"usr/bin/python{version}")
    command = (qemu, "-cpu", "cortex-a72", "-L", str(root), python, "-P")
    variables = {"PYTHONPATH": str(folder)}
    return Environment(f"Python {version} on aarch64 (qemu)", command, variables, ["base"], True)
