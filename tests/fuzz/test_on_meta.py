"""Random calls with tensors on meta: nothing leaves the device; the short form.

The long form is ``python tests/fuzz/on_meta.py``.
"""

import pytest
from scripts import fuzz_script

on_meta = fuzz_script("on_meta")


def test_results_of_meta_stay_on_meta():
    assert list(on_meta.findings(3)) == []


@pytest.mark.parametrize("name", ["cat", "diag_embed", "mul", "new_zeros", "where"])
def test_shapes_and_dtypes_are_pytorchs(torch, name):
    assert list(on_meta.findings(20, name, torch)) == []


def test_what_leaves_the_device_is_found(monkeypatch):
    monkeypatch.setattr("convcore.exp", _on_cpu)
    assert any("left the device" in wrong for _, _, wrong in on_meta.findings(5, "exp"))


def _on_cpu(input):
    import convcore

    return convcore.zeros(input.shape, device="cpu")
