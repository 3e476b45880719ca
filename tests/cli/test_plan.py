"""`convcore plan`: the chosen algorithm, why not the others, and the bytes."""

from __future__ import annotations

import re

import pytest

from convcore import cli
from convcore.backends import conv
from convcore.engine import make_geometry, plan_conv
from convcore.engine.conv.algorithms import ALGORITHMS
from convcore.engine.conv.problem import PASSES, PassPlan
from convcore.engine.runtime import _isa

LAYER = "2,32,24,24,48,3,2,1"


def printed(capsys, *arguments):
    """Return what the command prints, cut into the head and a text a map."""
    assert cli.main(["plan", *arguments]) == 0
    head, *maps = capsys.readouterr().out.split("\n\n")
    return head, dict(zip(PASSES, maps, strict=True))


def test_plan_says_of_every_algorithm_whether_it_is_taken_or_why_not(capsys):
    _, maps = printed(capsys, LAYER)
    for name, text in maps.items():
        chosen = re.match(rf"{name}: (\w+)\n", text)[1]
        refused = dict(re.findall(r"^  not +(\w+): (.+)$", text, re.MULTILINE))
        assert {chosen, *refused} == {a.name for a in ALGORITHMS if name in a.passes}
        assert chosen not in refused and re.search(r"^  because +\S", text, re.MULTILINE)


def test_plan_prints_the_bytes_that_the_engine_plans(capsys):
    plan = plan_conv(make_geometry((2, 32, 24, 24), (48, 32, 3, 3), 2, 1), "float64", True)
    _, maps = printed(capsys, LAYER, "--dtype", "float64", "--format", "channels_last")
    for name, text in maps.items():
        of_map: PassPlan = getattr(plan, name)
        scratch, unit = re.search(r"scratch +([\d.]+) (\w+) a thread, of 8.0 MiB", text).groups()
        size = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}[unit]
        assert float(scratch) == pytest.approx(of_map.scratch_bytes / size, abs=0.05)
        assert f"{of_map.multiply_adds:,}" in text
    assert "of packed weights, 1.00 of the weight, of 4 allowed" in maps["input_grad"]
    assert "of partial sums, of 32.0 MiB allowed" in maps["weight_grad"]


def test_plan_names_the_instruction_set(capsys):
    head, _ = printed(capsys, LAYER)
    assert re.search(rf"^  instructions +{_isa.name()}$", head, re.MULTILINE)


FORBID = [
    part for name in ("im2col", "indirect", "stride_decomposition") for part in ("--forbid", name)
]


def test_plan_takes_the_selection_and_leaves_none_behind(capsys):
    _, maps = printed(capsys, LAYER, *FORBID, "--strict")
    assert maps["input_grad"].startswith("input_grad: gemm_col2im\n")
    assert re.search(r"^  not +stride_decomposition: forbidden$", maps["input_grad"], re.MULTILINE)
    assert not conv.forbidden and not conv.strict


def test_plan_tells_what_products_in_bfloat16_change(capsys, monkeypatch):
    monkeypatch.setattr(_isa, "bfloat16_is_emulated", lambda: False)
    _, maps = printed(capsys, "8,64,14,14,128,1", "--precision", "bf16")
    assert {text.partition("\n")[0] for text in maps.values()} == {f"{n}: bfloat16" for n in maps}
    _, maps = printed(capsys, "8,64,14,14,128,3,1,1", "--precision", "bf16")
    reason = "Winograd's method in float32 is faster"
    assert re.search(rf"^  not +bfloat16: {reason}$", maps["forward"], re.MULTILINE)
    assert conv.fp32_precision == "none"


def test_plan_says_where_a_forced_algorithm_is_not_taken(capsys):
    _, maps = printed(capsys, LAYER, "--algorithm", "gemm_col2im")
    assert maps["input_grad"].startswith("input_grad: gemm_col2im\n")
    assert re.search(r"^  not +gemm_col2im: it computes no forward$", maps["forward"], re.MULTILINE)


@pytest.mark.parametrize("option", ["--algorithm", "--forbid"])
def test_plan_refuses_an_unknown_algorithm_by_name(option, capsys):
    assert cli.main(["plan", LAYER, option, "fft"]) == 2
    said = capsys.readouterr()
    assert not said.out and "'fft'" in said.err and "'im2col'" in said.err


def test_info_names_the_instruction_set_in_use(capsys):
    assert cli.main(["info"]) == 0
    in_use = re.search(r"^  in use +(\w+), out of (.+) \(", capsys.readouterr().out, re.MULTILINE)
    assert in_use[1] == _isa.name() and in_use[2].split(", ") == _isa.names()


def test_info_tells_whether_bfloat16_is_fast_here(capsys, monkeypatch):
    for emulated, words in ((True, "as float32's, no faster"), (False, "products by ")):
        monkeypatch.setattr(_isa, "bfloat16_is_emulated", lambda answer=emulated: answer)
        assert cli.main(["info"]) in (0, 1)
        assert words in capsys.readouterr().out
