"""Comparisons, closeness, and what is equal or unique, beside PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree, same_error
from call_tests import dtypes_agree, errors_agree
from edges import SPECIAL

import convcore

MIXED = {
    "eq": lambda m, x, y: x == y,
    "ne": lambda m, x, y: x != y,
    "lt": lambda m, x, y: x < y,
    "le": lambda m, x, y: x <= y,
    "gt": lambda m, x, y: x > y,
    "ge": lambda m, x, y: x >= y,
}
test_operands_of_any_dtype_are_promoted_as_in_pytorch = dtypes_agree(MIXED)


COMPARED = ("eq", "ne", "lt", "le", "gt", "ge")


@pytest.mark.parametrize("name", COMPARED)
def test_comparison_agrees_with_pytorch_at_special_values(torch, name):
    x, y = (a.reshape(-1) for a in np.meshgrid(SPECIAL, SPECIAL))
    agree(torch, lambda m, x, y: getattr(m, name)(x.detach(), y.detach()), x, y)


@pytest.mark.parametrize("other", [None, "a", [1], {}])
def test_comparison_with_what_is_no_operand_is_pythons(other):
    x = convcore.ones(2)
    assert (x == other) is False
    assert (x != other) is True
    with pytest.raises(TypeError, match="'<' not supported between instances of 'Tensor' and"):
        x < other  # noqa: B015
    with pytest.raises(TypeError):
        convcore.eq(x, other)


def test_comparison_of_integers_with_numbers_beyond_their_dtype_is_exact():
    x = convcore.tensor([44, 255], dtype=convcore.uint8)
    assert (x == 300).tolist() == [False, False]
    assert (x < 300).tolist() == [True, True]
    assert (x > -1).tolist() == [True, True]


@pytest.mark.parametrize("equal_nan", [True, False])
@pytest.mark.parametrize("tolerances", [{}, {"rtol": 0.1, "atol": 0.2}, {"rtol": 0, "atol": 0}])
def test_isclose_agrees_with_pytorch(torch, equal_nan, tolerances):
    values = [*SPECIAL, 1 + 1e-9, 1.05, 1.25]
    x, y = (a.reshape(-1) for a in np.meshgrid(values, values))

    def function(m, x, y):
        x, y = x.detach(), y.detach()
        close = m.allclose(x, y, equal_nan=equal_nan, **tolerances)
        return m.isclose(x, y, equal_nan=equal_nan, **tolerances), m.tensor(close)

    agree(torch, function, x, y)
    whole = np.arange(5)
    agree(torch, lambda m, x: m.isclose(x, x.flip(0), **tolerances), whole)


def test_equal_is_about_shape_and_values():
    x = convcore.tensor([1.0, 2.0])
    assert convcore.equal(x, convcore.tensor([1, 2]))
    assert not x.equal(convcore.tensor([1.0, 3.0]))
    assert not convcore.equal(x, convcore.tensor([[1.0, 2.0]]))
    assert not convcore.equal(x, convcore.ones(1))


def test_unique_agrees_with_pytorch(torch, rng):
    x = rng.integers(0, 3, (4, 2))
    agree(torch, lambda m, x: x.unique(), x)
    agree(torch, lambda m, x: m.unique(x, return_inverse=True, return_counts=True), x)
    agree(torch, lambda m, x: m.unique(x, return_inverse=True, dim=0), x)


ERRORS = {
    "isclose of two dtypes": lambda m: m.isclose(m.ones(2), m.ones(2).double()),
    "compared shapes": lambda m: m.ones(2, 2) == m.ones(3),
    "is_nonzero of two": lambda m: m.is_nonzero(m.ones(2)),
}
test_errors_are_pytorchs = errors_agree(ERRORS)


def test_comparisons_in_place_have_longer_names_too(torch):
    for name in ("greater_", "greater_equal_", "less_", "less_equal_", "not_equal_"):
        agree(torch, lambda m, x, name=name: getattr(x, name)(1), np.arange(3))


def test_nan_is_unique_each_time_it_occurs():
    nan = float("nan")
    x = convcore.tensor([3.0, nan, 1.0, nan, 1.0])
    values, inverse, counts = x.unique(return_inverse=True, return_counts=True)
    assert repr(values.tolist()) == "[1.0, 3.0, nan, nan]"
    assert (inverse.tolist(), counts.tolist()) == ([1, 2, 0, 3, 0], [2, 1, 1, 1])


def test_unique_elements_and_rows_with_nan_agree_with_pytorch(torch):
    nan = float("nan")
    options = {"return_inverse": True, "return_counts": True}
    line = np.array([3.0, nan, 1.0, nan, 1.0])
    agree(torch, lambda m, x: m.unique(x.detach(), **options), line)
    rows = np.array([[1, nan], [1, nan], [0, 1], [0, 1]])
    agree(torch, lambda m, x: m.unique(x.detach(), **options), rows)
    agree(torch, lambda m, x: m.unique(x.detach(), dim=1, **options), rows)


def test_a_tensor_without_axes_has_no_unique_slices(torch):
    same_error(torch, lambda m, x: m.unique(x, dim=-1), np.array(1.0))
