"""The program of `docs/howto/onnx.rst` reads the name tag in a photograph."""

import importlib.util
import re
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("onnx")

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "onnx.rst"


@pytest.mark.skipif(
    importlib.util.find_spec("rapidocr_onnxruntime") is None,
    reason="rapidocr_onnxruntime is not installed",
)
def test_reads_the_name_tag(capsys):
    text = PAGE.read_text(encoding="utf-8")
    (program,) = re.findall(r":caption: name_tag\.py\n\n((?: {4}.*\n|\n)+)", text)
    (expected,) = re.findall(r"\$ python name_tag\.py\n +(.*\n)", text)
    exec(textwrap.dedent(program), {})
    assert capsys.readouterr().out == expected
