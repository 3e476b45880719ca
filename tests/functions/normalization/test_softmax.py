"""softmax, log_softmax and softmin beside PyTorch's: values, gradients, extremes, dtypes."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree
from elements import REAL, SEEDS, SHAPES, TOLERANCE, drawn
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

import convcore
from convcore.autograd import gradcheck, gradgradcheck
from convcore.nn import functional as F


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
@examples(15)
@given(st.data(), SHAPES, SEEDS)
def test_softmax_agrees_with_pytorch(torch, name, data, shape, seed):
    dtype = data.draw(st.sampled_from(REAL))
    rank = max(len(shape), 1)
    dim = data.draw(st.integers(-rank, rank - 1))
    x = drawn(np.random.default_rng(seed), shape, dtype, -4, 4)

    def function(m, x):
        return getattr(m.nn.functional, name)(x, dim)

    nodes = 0 if 0 in shape else 1
    agree(torch, function, x, seed=seed, nodes=nodes, rtol=TOLERANCE[dtype])


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_gradients_are_those_of_finite_differences(rng, name):
    x = convcore.from_numpy(rng.normal(size=(3, 4))).requires_grad_()
    function = lambda x: getattr(F, name)(x, 0)  # noqa: E731
    assert gradcheck(function, (x,))
    assert gradgradcheck(function, (x,))


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_of_huge_numbers_and_infinities_agrees_with_pytorch(torch, name):
    rows = [[1e4, 1e4, 0], [-1e4, 0, 1], [-np.inf, 0, 0], [-np.inf] * 3, [np.inf, 0, 0]]
    values = [getattr(m.nn.functional, name)(m.tensor(rows), 1).numpy() for m in (convcore, torch)]
    np.testing.assert_allclose(*values, rtol=1e-6)


def test_softmax_in_another_dtype_converts_first(torch, rng):
    x = rng.normal(size=(2, 3)).astype(np.float32)
    agree(torch, lambda m, x: m.softmax(x, 1, dtype=m.float64), x, rtol=1e-6)
    agree(torch, lambda m, x: x.log_softmax(-1, dtype=m.float64), x, rtol=1e-6)
    agree(torch, lambda m, x: m.softmax(x.detach().long(), 1, dtype=m.float64), x, rtol=1e-6)


def test_softmax_without_an_axis_warns():
    with pytest.warns(UserWarning, match="Implicit dimension choice for softmax") as caught:
        assert F.softmax(convcore.zeros(2, 4))[0, 0].item() == 0.25
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="Implicit dimension choice for softmin") as caught:
        F.softmin(convcore.zeros(2, 4))
    assert caught[0].filename == __file__
