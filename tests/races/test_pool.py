"""The pool of threads alone, as C: each share of each region is done once, with several callers."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ENGINE = HERE.parents[1] / "convcore" / "engine"


@pytest.mark.subprocess
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the pool is Linux's")
@pytest.mark.skipif(not ENGINE.is_dir(), reason="the sources are not beside the tests")
@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not here")
def test_every_share_of_every_region_is_done_once(tmp_path):
    program = tmp_path / "pool"
    flags = ["-O2", f"-I{ENGINE}", "-fopenmp", "-Wl,--as-needed", "-pthread"]
    subprocess.run(["gcc", HERE / "pool.c", "-o", program, *flags], check=True)
    for _ in range(5):
        subprocess.run([program, "good"], check=True, timeout=60)
