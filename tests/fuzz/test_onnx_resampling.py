"""Resizes, pools and transposed convolutions in both directions: a short run of the script.

The long form is ``python tests/fuzz/onnx_resampling.py --count=50_000``.
"""

import numpy as np
import pytest
from scripts import fuzz_script

pytest.importorskip("onnx", reason="needs onnx: pip install 'convcore[onnx]'")
pytest.importorskip("onnxruntime")

CASES = 60


@pytest.fixture(scope="module")
def fuzzer():
    return fuzz_script("onnx_resampling")


NAMES = (
    *("resize", "upsample", "max_pool", "average_pool", "lp_pool", "global_pool"),
    *("conv_transpose", "interpolate", "max_pool_call", "avg_pool_call"),
    *("adaptive_call", "conv_transpose_call"),
)


def test_every_family_is_tried(fuzzer):
    assert {*fuzzer.NODES, *fuzzer.CALLS} == {*NAMES}


@pytest.mark.parametrize("family", NAMES)
def test_random_cases_agree_with_other_runtimes(fuzzer, family, seed):
    found, judges = fuzzer.run(CASES, seed, [family])
    assert found == []
    judged = sum(times for (_, judge), times in judges.items() if judge not in ("none", "refused"))
    assert judged > 0.6 * CASES


def test_a_case_is_drawn_from_its_number(fuzzer):
    for family in ("resize", "interpolate"):
        table = fuzzer.NODES if family in fuzzer.NODES else fuzzer.CALLS
        one, other = (table[family](fuzzer.Draw(7)) for _ in range(2))
        assert repr(one) == repr(other)


def test_differences_are_told(fuzzer):
    x = np.float32([1, 2])
    assert fuzzer.difference(x, x) == ""
    assert fuzzer.difference(x, x[:1]).startswith("shape")
    assert fuzzer.difference(x, x.astype(float)).startswith("dtype")
    assert fuzzer.difference(x, x + np.float32(1e-6), is_exact=True).startswith("1.0 at (0,)")


def test_findings_are_told(fuzzer, monkeypatch):
    monkeypatch.setattr(fuzzer, "check", lambda family, number: ("nobody", "wrong"))
    found, judges = fuzzer.run(3, 1, ["resize"])
    assert found == [("resize", 1_000_000 + k, "wrong") for k in range(3)]
    assert judges == {("resize", "nobody"): 3}
