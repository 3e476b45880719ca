"""Run the kernels under ThreadSanitizer, and programs that show what it sees: Linux, gcc.

    CONVCORE_DEBUG=thread python setup.py build_ext --inplace    # or `bash .ci/run races`, for both
    python tests/races/watch.py

The exit code is 1 if there was a race, or if a control's known race was not found, or one found in
the control that has none.  There are no suppressions; gomp.c says why none are needed.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
CC = os.environ.get("CC", "gcc")
REPORT = "WARNING: ThreadSanitizer: data race"
# ThreadSanitizer's exit code where it has reported anything.
FOUND = 66
TIMEOUT = 600  # seconds; 30 s are usual


def compile_library(source: str, folder: str, *flags: str) -> str:
    """Return the path of the shared library that a C file beside this one becomes."""
    library = str(Path(folder, source).with_suffix(".so"))
    command = [CC, "-shared", "-fPIC", "-O1", "-g", str(HERE / source), "-o", library, *flags]
    subprocess.run(command, check=True)
    return library


def sanitizer() -> str:
    """Return the path of gcc's ThreadSanitizer."""
    command = [CC, "-print-file-name=libtsan.so"]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    if not Path(found).is_file():
        sys.exit("libtsan is not here: on Debian it comes with gcc")
    return found


def watch(preloaded: list[str], *program: str) -> tuple[int, list[str], str]:
    """Run a program under ThreadSanitizer; return its exit code, its reports and its output."""
    command = [sys.executable, str(HERE / program[0]), *program[1:]]
    if shutil.which("setarch"):  # where addresses are drawn from more bits than libtsan has maps of
        command = ["setarch", platform.machine(), "--addr-no-randomize", *command]
    environment = {
        **os.environ,
        "LD_PRELOAD": " ".join(preloaded),
        # The first report is no reason to stop, and a lock's order is no race.
        "TSAN_OPTIONS": f"halt_on_error=0 detect_deadlocks=0 history_size=5 exitcode={FOUND}",
        "OMP_WAIT_POLICY": "passive",
    }
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT)
    reports = re.split(r"(?m)^=+$", done.stderr)
    return done.returncode, [text for text in reports if REPORT in text], done.stdout + done.stderr


def main() -> int:
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        # libgomp is named, so that it is loaded in all modules' sight, and gomp.c's calls find it.
        gomp = compile_library("gomp.c", folder, "-Wl,--no-as-needed", "-lgomp")
        control = compile_library("control.c", folder, "-fsanitize=thread", "-fopenmp")
        preloaded = [sanitizer(), gomp]
        for has_race, *program in (
            (False, "control.py", "barrier", control),
            (True, "control.py", "no_barrier", control),
            (True, "control.py", "one_array", control),
            (False, "workload.py"),
        ):
            start = time.perf_counter()
            code, reports, output = watch(preloaded, *program)
            right = (code, bool(reports)) == ((FOUND, True) if has_race else (0, False))
            failed |= not right
            name = " ".join(program[:2]).replace(f" {control}", "")
            expected = "races are expected" if has_race else "none is expected"
            print(f"{name}: {len(reports)} races, {expected}; exit code {code}", end=", ")
            print(f"{time.perf_counter() - start:.0f} s", "" if right else "FAILED")
            if not right:
                print(output[:20_000])
            elif not has_race:
                print(output, end="")
    return failed


if __name__ == "__main__":
    sys.exit(main())
