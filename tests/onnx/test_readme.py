"""The README's program that reads a photograph, word for word."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

pytest.importorskip("onnx")

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


@pytest.mark.skipif(
    importlib.util.find_spec("rapidocr_onnxruntime") is None,
    reason="rapidocr_onnxruntime is not installed",
)
def test_reads_the_name_tag(capsys):
    (program,) = re.findall(r"```python\n(from .*?)```", README, re.DOTALL)
    (expected,) = re.findall(r"# ([A-Z ]+)\n", program)
    exec(f"import convcore as torch\n{program}", {})
    assert capsys.readouterr().out == f"{expected}\n"
