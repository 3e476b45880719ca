"""The page of PyTorch's names says what there is."""

from convcore.compat import table
from convcore.compat.differences import DIFFERENCES


def test_the_page_has_a_section_for_each_module():
    sections = [line for line in table.page() if line.startswith("## ")]
    assert sections == [f"## {module}" for module in table.MODULES]


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
