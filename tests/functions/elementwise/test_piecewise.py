"""Bounds, extremes of two, choices and numbers for NaN, beside PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree
from call_tests import (
    dtypes_agree,
    errors_agree,
    in_place_agrees,
    in_place_keeps_memory,
    pairs_agree,
    pairs_have_gradients,
    pairs_keep_channels_last,
    special_pairs_agree,
)

import convcore

# Functions of two tensors, and of a tensor and a number: (name, call, lowest, highest, complex)
TWO = [
    ("maximum", lambda m, x, y: m.maximum(x, y), -3, 3, False),
    ("minimum", lambda m, x, y: m.minimum(x, y), -3, 3, False),
    ("fmax", lambda m, x, y: m.fmax(x, y), -3, 3, False),
    ("fmin", lambda m, x, y: m.fmin(x, y), -3, 3, False),
    ("max", lambda m, x, y: m.max(x, y), -3, 3, False),
    ("where", lambda m, x, y: m.where((abs(x) > 1.5).detach(), x, y), -3, 3, True),
    ("where number", lambda m, x, y: m.where((abs(x) > 1.5).detach(), x, 2.0) * y, -3, 3, True),
    ("clamp tensors", lambda m, x, y: m.clamp(x * 2, y - 1, y + 1), -3, 3, False),
    ("clamp to a tensor", lambda m, x, y: x.clamp(max=y), -3, 3, False),
    ("clamp_min", lambda m, x, y: m.clamp_min(x, y), -3, 3, False),
    ("clamp", lambda m, x, y: m.clamp(x, -1, 1) * y, -3, 3, False),
    ("clip", lambda m, x, y: x.clip(min=0.5) * y, -3, 3, False),
    ("clamp_max", lambda m, x, y: x.clamp_max(0.5) * y, -3, 3, False),
]
test_function_of_two_agrees_with_pytorch = pairs_agree(TWO)
test_gradients_are_those_of_finite_differences = pairs_have_gradients(TWO)
test_results_keep_channels_last = pairs_keep_channels_last(TWO)


EDGES = {
    "maximum": lambda m, x, y: m.maximum(x, y),
    "minimum": lambda m, x, y: m.minimum(x, y),
    "fmax": lambda m, x, y: m.fmax(x, y),
    "fmin": lambda m, x, y: m.fmin(x, y),
    "clamp": lambda m, x, y: x.clamp(-1, 0.5),
    "clamp low": lambda m, x, y: x.clamp(min=1),
    "clamps": lambda m, x, y: x.clamp(y, -y),
    "clamp crossed": lambda m, x, y: x.clamp(2, 1),
    "nan_to_num": lambda m, x, y: m.nan_to_num(x, 3.0, 4.0, 5.0),
    "where": lambda m, x, y: m.where(x > 0, x, y),
}
test_ties_and_special_values_agree_with_pytorch = special_pairs_agree(EDGES)


IN_PLACE = {
    "clamp_": lambda m, x: x.clamp_(0.5, 0.7),
    "clamp_min_": lambda m, x: x.clamp_min_(0.5),
    "clamp_max_": lambda m, x: x.clamp_max_(0.5),
}
test_in_place_agrees_with_pytorch = in_place_agrees(IN_PLACE)
test_in_place_without_graph_keeps_the_memory = in_place_keeps_memory(IN_PLACE)


MIXED = {
    "maximum": lambda m, x, y: m.maximum(x, m.as_tensor(y)),
    "where": lambda m, x, y: m.where(m.tensor([True, False, True]), x, y),
    "clamp": lambda m, x, y: m.clamp(x, max=y),
    "clamp_min": lambda m, x, y: m.clamp_min(x, y),
}
test_operands_of_any_dtype_are_promoted_as_in_pytorch = dtypes_agree(MIXED)


def test_where_of_one_argument_gives_indices(torch, rng):
    for shape in [(), (3,), (2, 3)]:
        x = np.asarray(rng.random(shape) < 0.5)
        agree(torch, lambda m, x: m.where(x), x)


ERRORS = {
    "clamp without bounds": lambda m: m.ones(2).clamp(),
    "where by integers": lambda m: m.where(m.tensor([1]), m.ones(1), m.ones(1)),
    "where of shapes": lambda m: m.where(m.ones(2) > 0, m.ones(3), m.ones(3)),
    "shapes": lambda m: m.maximum(m.ones(2), m.ones(3)),
    "maximum with a number": lambda m: m.maximum(m.ones(1), 2.0),
}
test_errors_are_pytorchs = errors_agree(ERRORS)


@pytest.mark.parametrize("bounds", [(-0.5, 1), (None, 0.5), (0, None), (2, 1)])
@pytest.mark.parametrize("dtype", ["float16", "float32", "int64"])
def test_clamp_of_many_elements_agrees_with_pytorch(torch, rng, bounds, dtype):
    x = (rng.normal(size=(4, 50, 100)) * 3).astype(dtype)
    if dtype != "int64":
        x[0, 0, :3] = np.nan, np.inf, -np.inf
    agree(torch, lambda m, x: m.clamp(x.detach(), *bounds), x, strides=True)
    agree(torch, lambda m, x: m.clamp(x.detach(), *bounds), x.transpose(0, 2, 1), strides=True)


def test_where_of_a_number_beyond_the_dtype(torch):
    """A negative integer wraps around in an unsigned one, as elsewhere; a larger one is refused."""
    for lib in (torch, convcore):
        x = lib.tensor([1, 2], dtype=lib.uint8)
        assert lib.where(x > 1, x, -1).tolist() == [255, 2]
        with pytest.raises(RuntimeError, match="without overflow"):
            lib.where(x > 1, x, 300)


@pytest.mark.parametrize("name", ["clamp", "clip", "clamp_"])
def test_bounds_are_tensors_both_or_numbers_both(lib, name):
    clamp = getattr(lib.ones(2), name)
    for bounds in ((lib.ones(2), 1), (1.5, lib.ones(2)), (lib.ones(1), True)):
        with pytest.raises(TypeError, match=r"clamp|clip"):
            clamp(*bounds)
    assert clamp(lib.tensor(3.0), 4).tolist() == [3, 3]
    assert clamp(min=lib.zeros(2), max=None).tolist() == [3, 3] if name == "clamp_" else [1, 1]
