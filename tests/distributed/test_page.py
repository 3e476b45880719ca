"""The how-to's programs: training prints the same for any number of ranks; Slurm's is bash."""

import re
import shutil
import subprocess
import textwrap
from pathlib import Path

import mpi
import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "distributed.rst"

pytestmark = pytest.mark.subprocess


def file_of(name):
    found = re.search(
        rf":caption: {re.escape(name)}\n\n((?: {{4}}.*\n|\n)+)", PAGE.read_text("utf-8")
    )
    return textwrap.dedent(found[1])


def test_the_pages_program_prints_the_same_for_any_number(tmp_path):
    lines = [mpi.run(file_of("train.py"), ranks, tmp_path) for ranks in (1, 2, 4)]
    assert lines[0] == lines[1] == lines[2]
    assert re.fullmatch(r"loss \d\.\d{4}, weights [0-9a-f]{12}", lines[0][0]) and len(lines[0]) == 1


@pytest.mark.skipif(not shutil.which("bash"), reason="this system has no bash")
def test_the_slurm_script_is_bash():
    text = file_of("train.slurm")
    subprocess.run(["bash", "-n"], input=text, text=True, check=True, timeout=30)
    assert "srun" in text and text.startswith("#!/bin/bash\n#SBATCH")
