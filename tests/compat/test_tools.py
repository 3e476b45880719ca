"""Other people's tools for PyTorch run on convcore as they are, and print what they print there.

Each program in ``programs/tools`` uses one tool, in the manner of its documentation.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from printed import assert_same_numbers

TESTS = Path(__file__).parents[1]
PROGRAMS = {file.stem: file for file in sorted((TESTS / "programs" / "tools").glob("*.py"))}
# Starts a program on PyTorch, whose tool may import torchvision.
ON_PYTORCH = TESTS / "helpers" / "torchvision_on_pytorch.py"
# The module that a program needs besides the tool's own.
BESIDES = {
    "use_grad_cam": ("cv2", "ttach", "sklearn", "torchvision"),
    "use_torchviz": ("graphviz",),
    "use_zennit": ("torchvision",),
    "use_gpytorch": ("linear_operator", "jaxtyping", "wadler_lindig", "sklearn", "mpmath"),
    "use_kornia": ("kornia_rs",),
    "use_opacus": ("opt_einsum",),
    "use_pytorch_lightning": ("lightning_utilities", "torchmetrics", "fsspec", "yaml", "tqdm"),
    "use_torchmetrics": ("lightning_utilities",),
}


def modules_of(program: Path) -> list[str]:
    """Return the modules that a program imports besides PyTorch, and those that they need."""
    found = re.findall(r"^(?:from|import) (\w+)", program.read_text(), re.MULTILINE)
    others = [name for name in found if name not in {*sys.stdlib_module_names, "torch", "numpy"}]
    return [*dict.fromkeys(others), *BESIDES.get(program.stem, ())]


def printed_by(program: Path, *start: str) -> str:
    """Return what a program prints."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *start, str(program)],
        capture_output=True, text=True, timeout=300, env={**os.environ, "MPLBACKEND": "agg"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.subprocess
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_tool_prints_on_convcore_what_it_prints_on_pytorch(program):
    for module in modules_of(program):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    ours = printed_by(program, "-m", "convcore", "run")
    assert len(ours) > 40
    if importlib.util.find_spec("torch") is not None:
        start = [str(ON_PYTORCH)] if importlib.util.find_spec("torchvision") else []
        assert_same_numbers(ours, printed_by(program, *start))


def test_the_page_names_each_tool_and_the_version_that_is_tested():
    root = TESTS.parent
    if not (root / "docs").exists():
        pytest.skip("in the source tree only")
    rows = re.findall(
        r"^    \* - (\S+)\n      - ([\d.]+)$",
        (root / "docs/howto/tools.rst").read_text(),
        re.MULTILINE,
    )
    named = {re.sub("[^a-z]", "", tool.lower()) for tool, _ in rows}
    programs = {name.removeprefix("use_").replace("_", "") for name in PROGRAMS}
    assert named == programs | {"torchsummary"}  # which tests/inspection/test_summary.py runs
    pinned = (root / ".ci" / "run").read_text() + (root / "pyproject.toml").read_text()
    for tool, version in rows:
        assert tool == "fvcore" or f"{tool}=={version}" in pinned, tool
