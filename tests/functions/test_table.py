"""The table of functions: what follows from its rows is there, and its formulas are right."""

from __future__ import annotations

import numpy as np
import pytest
from elements import ACTIVATIONS, EXACT, IDS, layer_of

from convcore import Tensor, from_numpy, nn
from convcore.functions.table import ROWS, row
from convcore.nn import functional as F


def test_each_function_is_public_and_has_a_layer():
    for name, entry in ROWS.items():
        assert getattr(F, name) is entry.function
        layer = getattr(nn, layer_of(name))(**entry.cases[0])
        assert isinstance(layer(from_numpy(np.ones(2))), Tensor)


def test_each_activation_of_the_module_is_in_the_table():
    unary = {n for n in vars(nn.modules.activation)["__all__"] if n not in NOT_ELEMENTWISE}
    assert {layer_of(name) for name in ROWS} == unary


# Layers along an axis, with weights, or with random slopes.
NOT_ELEMENTWISE = {
    *("GLU", "LogSoftmax", "MultiheadAttention", "PReLU", "RReLU", "Softmax", "Softmin")
}


@pytest.mark.parametrize(("name", "arguments", "has_inplace"), ACTIVATIONS, ids=IDS)
def test_values_are_those_of_the_formula(name, arguments, has_inplace, rng):
    x = np.concatenate([rng.uniform(-9, 9, 50), [0, -0.0, np.nan]])
    with np.errstate(all="ignore"):
        expected = ROWS[name].formula(EXACT, x, **arguments)
    found = getattr(F, name)(from_numpy(x), **arguments).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-15)


def test_a_row_is_entered_under_the_functions_name(monkeypatch):
    monkeypatch.setattr("convcore.functions.table.ROWS", entered := {})

    @row(lambda m, x: m.abs(x), operator="Abs")
    def size(input, inplace=False):
        return input

    assert entered["size"].function is size
    assert entered["size"].cases == ({},)
    assert entered["size"].has_inplace
