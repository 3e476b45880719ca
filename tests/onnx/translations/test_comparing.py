"""Comparisons, logic and choices in exported models."""

from __future__ import annotations

import pytest

import convcore

CASES = {
    "greater": lambda x: convcore.where(x > 0.5, x, -x),
    "greater_equal": lambda x: (x >= 0).float(),
    "equal": lambda x: (x == x.abs()) * x,
    "bitwise": lambda x: (x != 0) & (x < 1) | (x <= -1),
    "not_and_xor": lambda x: ~(x > 0) ^ (x < 1),
    "masked_fill": lambda x: x.masked_fill(x > 0.5, -1e9),
    "logical": lambda x: convcore.logical_and(x, x > 0).logical_or(x < -1).logical_not(),
    "logical_xor": lambda x: convcore.logical_xor(x > 0, x > 1),
    "integers": lambda x: (x * 4).int() > 2.5,
    "where_method": lambda x: x.where(x > 0, convcore.tensor(0.0)),
    "in_place": lambda x: (x > 0).logical_and_(x < 1),
    "no_numbers": lambda x: x.log().isnan() + x.isinf() + x.isfinite() * x,
    "nan_to_num": lambda x: x.log().nan_to_num(1.0, 2.0, 3.0),
    "infinite": lambda x: (x / 0).isposinf() * 2 + (x / 0).isneginf(),
    "isclose": lambda x: x.isclose(x + 1e-9),
}


@pytest.mark.parametrize("name", CASES)
def test_the_model_computes_what_the_function_does(name, agree, x):
    agree(CASES[name], x)
