"""What the self-check calls wrong: errors, and bits that differ."""

import os

import numpy as np
import pytest

from convcore.engine.conv.algorithms import NAMES
from convcore.engine.conv.call import CallPlan
from convcore.verify import checks
from convcore.verify.cases import parse_case

DENSE = "2,16,12,12,16,3,1,1 float32 channels_last/contiguous/strided positive 3"
DEPTHWISE = "1,16,9,9,16,3,2,1,1,16 float64 contiguous/reversed/unaligned normal 4"


@pytest.mark.parametrize("text", [DENSE, DEPTHWISE])
def test_right_results_have_small_errors_and_one_digest(text):
    case = parse_case(text)
    found = list(checks.errors(case))
    assert {pass_name for pass_name, _, _ in found} == {"forward", "input_grad", "weight_grad"}
    assert all(error <= checks.allowed_eps(case, *of) for *of, error in found)
    assert any(error > 0 for *_, error in found)
    first = checks.digests(case)
    assert set(first) == {f"{pass_name} {algorithm}" for pass_name, algorithm, _ in found}
    assert all(checks.digests(case, threads) == first for threads in checks.THREADS)


def test_all_algorithms_are_reached():
    grouped = "1,8,9,9,8,3,2,1,1,2 float32 contiguous/contiguous/contiguous normal 1"
    pointwise = "1,9,5,5,8,1 float32 contiguous/contiguous/contiguous normal 1"
    patches = "1,3,8,12,16,8,4,4 float32 contiguous/contiguous/contiguous normal 1"
    cases = [parse_case(text) for text in (DENSE, DEPTHWISE, grouped, pointwise, patches)]
    assert {algorithm for case in cases for _, algorithm, _ in checks.errors(case)} == set(NAMES)


def test_more_is_allowed_where_all_numbers_have_one_sign():
    positive = parse_case(DENSE)
    normal = parse_case(DENSE.replace("positive", "normal"))
    assert checks.allowed_eps(normal, "forward", "im2col") == 4
    assert checks.allowed_eps(normal, "weight_grad", "winograd") == 12
    assert checks.allowed_eps(positive, "forward", "im2col") == 4 + 0.75 * 12  # 16 * 9 terms
    assert checks.allowed_eps(positive, "weight_grad", "im2col") == 4 + 0.75 * 288**0.5


@pytest.mark.parametrize(
    ("layer", "pass_name", "share"),
    [
        ("1,64,1,1,64,3,1,3", "forward", 9),
        ("1,100,3,3,100,3,1,0", "input_grad", 9),
        ("1,16,2,8,16,3,1,1", "forward", 1.5),
        ("1,16,1,1,16,3,1,2", "weight_grad", 9),
    ],
)
def test_winograd_is_measured_by_whole_sums_where_an_image_is_smaller_than_the_kernel(
    layer, pass_name, share
):
    case = parse_case(f"{layer} float32 contiguous/contiguous/contiguous positive 1")
    whole = checks.allowed_eps(case, pass_name, "im2col") + 8
    assert checks.allowed_eps(case, pass_name, "winograd") == pytest.approx(whole * share)
    assert all(error <= checks.allowed_eps(case, *of) for *of, error in checks.errors(case))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_has_the_same_bits():
    case = parse_case(DENSE)
    assert checks.digests_in_child(case) == checks.digests(case)


def test_a_wrong_element_is_seen(monkeypatch):
    def call(self, *arguments, run=CallPlan.__call__):
        result = run(self, *arguments)
        if self.plan.algorithm == "im2col":
            result.flat[-1] += 1e-4 * np.abs(result).max()
        return result

    monkeypatch.setattr(CallPlan, "__call__", call)
    case = parse_case(DENSE)
    wrong = {of[1] for *of, error in checks.errors(case) if error > checks.allowed_eps(case, *of)}
    assert wrong == {"im2col"}


@pytest.mark.parametrize("spoil", [lambda a: a * np.nan, lambda a: a[:, :1], lambda a: a + 0j])
def test_a_nan_a_wrong_shape_and_a_wrong_dtype_are_no_small_error(monkeypatch, spoil):
    def call(self, *arguments, run=CallPlan.__call__):
        return spoil(run(self, *arguments))

    monkeypatch.setattr(CallPlan, "__call__", call)
    assert {error for *_, error in checks.errors(parse_case(DENSE))} == {float("inf")}
