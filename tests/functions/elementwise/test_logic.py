"""Bits and truth values of elements, beside PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree
from call_tests import dtypes_agree, errors_agree
from elements import INTEGER

MIXED = {
    "and": lambda m, x, y: x & y,
    "or": lambda m, x, y: x | y,
    "xor": lambda m, x, y: x ^ y,
    "lshift": lambda m, x, y: x << y,
    "rshift": lambda m, x, y: x >> y,
    "logical_and": lambda m, x, y: m.logical_and(x, m.as_tensor(y)),
    "logical_or": lambda m, x, y: m.logical_or(x, m.as_tensor(y)),
    "logical_xor": lambda m, x, y: m.logical_xor(x, m.as_tensor(y)),
}
test_operands_of_any_dtype_are_promoted_as_in_pytorch = dtypes_agree(MIXED)


@pytest.mark.parametrize("name", ["logical_not", "bitwise_not"])
@pytest.mark.parametrize("dtype", [*INTEGER, "bool"])
def test_not_of_integers_agrees_with_pytorch(torch, name, dtype):
    x = np.array([[0, 1, 2], [3, 1, 0]], dtype)
    agree(torch, lambda m, x: getattr(m, name)(x), x)


ERRORS = {
    "bits of floats": lambda m: m.ones(2) & 1,
    "inverted floats": lambda m: ~m.ones(2),
    "logical_and with a number": lambda m: m.logical_and(m.ones(1), 1),
}
test_errors_are_pytorchs = errors_agree(ERRORS)
