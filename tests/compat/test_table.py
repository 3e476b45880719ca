"""The page of PyTorch's names says what there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from convcore.compat import table
from convcore.compat.differences import DIFFERENCES

PAGE = Path(__file__).parents[2] / "docs" / "pytorch_names.md"


def test_the_page_is_up_to_date():
    if not PAGE.exists():
        pytest.skip("the page is not beside the tests, which are here to test a wheel")
    written = PAGE.read_text("utf-8").splitlines()
    assert written == list(table.page()), (
        "made anew by: python -m convcore.compat.table > docs/pytorch_names.md"
    )


def test_every_difference_is_of_a_name_that_is_here():
    for path in DIFFERENCES:
        module, _, name = path.rpartition(".")
        assert name in table.sorted_out(module)["differs"], path


def test_names_are_sorted_out():
    found = table.sorted_out("torch.nn")
    assert "Conv2d" in found["here"] and "SyncBatchNorm" in found["differs"]
    assert table.sorted_out("torch")["out of scope"].count("stft") == 1
    alone = table.sorted_out("torch")["convcore run"]
    assert {"jit", "complex32"} <= set(alone) and not {"onnx", "conv2d"} & set(alone)
    assert all(found["here"] for found in map(table.sorted_out, table.MODULES))
