"""Run the pool of threads and the kernels under ThreadSanitizer: Linux, gcc.

    CONVCORE_DEBUG=thread python setup.py build_ext --inplace    # or `bash .ci/run races`, for both
    python tests/races/watch.py

The exit code is 1 if there was a race, if a known race was not found, or if a program failed.
There are no suppressions: the pool is compiled for ThreadSanitizer like the kernels.
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

HERE = Path(__file__).resolve().parent
ENGINE = HERE.parents[1] / "convcore" / "engine"  # of the sources: the pool is compiled alone
CC = os.environ.get("CC", "gcc")
REPORT = "WARNING: ThreadSanitizer: data race"
# ThreadSanitizer's exit code where it has reported anything.
FOUND = 66
TIMEOUT = 600  # seconds; 30 s are usual


def compile_pool(folder: str) -> str:
    """Return the path of the program that pool.c becomes."""
    program = str(Path(folder, "pool"))
    flags = ["-O1", "-g", "-fopenmp", "-fsanitize=thread", "-Wl,--as-needed", "-pthread"]
    command = [CC, str(HERE / "pool.c"), "-o", program, f"-I{ENGINE}", *flags]
    subprocess.run(command, check=True)
    return program


def sanitizer() -> str:
    """Return the path of gcc's ThreadSanitizer."""
    command = [CC, "-print-file-name=libtsan.so"]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    if not Path(found).is_file():
        sys.exit("libtsan is not here: on Debian it comes with gcc")
    return found


def watch(*command: str, preloaded: str = "") -> tuple[int, list[str], str]:
    """Run a program under ThreadSanitizer; return its exit code, its reports and its output."""
    if shutil.which("setarch"):  # where addresses are drawn from more bits than libtsan has maps of
        command = ("setarch", platform.machine(), "--addr-no-randomize", *command)
    environment = {
        **os.environ,
        "LD_PRELOAD": preloaded,
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
        pool = compile_pool(folder)
        for has_race, preloaded, *command in (
            (False, "", pool, "good"),
            (True, "", pool, "race"),
            (True, sanitizer(), sys.executable, str(HERE / "control.py")),
            (False, sanitizer(), sys.executable, str(HERE / "workload.py")),
        ):
            start = time.perf_counter()
            code, reports, output = watch(*command, preloaded=preloaded)
            right = (code, bool(reports)) == ((FOUND, True) if has_race else (0, False))
            failed |= not right
            name = " ".join(Path(word).name for word in command)
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
