"""Other people's tools for PyTorch run on convcore as they are, and print what they print there.

Each program in ``programs/tools`` uses one tool, in the manner of its documentation.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from fork_server import ForkServer
from printed import assert_same_numbers

TESTS = Path(__file__).parents[1]
PROGRAMS = {file.stem: file for file in sorted((TESTS / "programs" / "tools").glob("use_*.py"))}
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
    known = {*sys.stdlib_module_names, "torch", "numpy", "small_net"}
    others = [name for name in found if name not in known]
    return [*dict.fromkeys(others), *BESIDES.get(program.stem, ())]


@pytest.fixture(scope="module")
def convcore() -> Iterator[ForkServer]:
    with ForkServer("convcore.cli", "convcore.nn", "convcore.compat") as server:
        yield server


@pytest.fixture(scope="module")
def pytorch() -> Iterator[ForkServer]:
    vision = ["torchvision_on_pytorch:import_torchvision"] * bool(find_spec("torchvision"))
    with ForkServer("torch", "torch._dynamo", *vision) as server:
        yield server


def printed_by(server: ForkServer, *arguments: object) -> str:
    """Return what a program prints."""
    done = server.run("-W", "ignore", *arguments, env={**os.environ, "MPLBACKEND": "agg"})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.subprocess
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_tool_prints_on_convcore_what_it_prints_on_pytorch(program, request):
    for module in modules_of(program):
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    ours = printed_by(request.getfixturevalue("convcore"), "-m", "convcore", "run", program)
    assert len(ours) > 40
    if find_spec("torch") is not None:
        assert_same_numbers(ours, printed_by(request.getfixturevalue("pytorch"), program))


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
