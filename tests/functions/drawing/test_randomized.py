"""rrelu and gumbel_softmax: the numbers that PyTorch draws, gradients, limits."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree, same_error

import convcore
from convcore.nn import functional as F


def drawn(call):
    """Return a call that draws from the same seed in either library."""

    def seeded(m, *args):
        m.manual_seed(11)
        return call(m.nn.functional, *args)

    return seeded


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_drawn_slopes_agree_with_pytorch(torch, rng, dtype):
    x = rng.normal(size=(5, 40)).astype(dtype)
    agree(torch, drawn(lambda f, x: f.rrelu(x, training=True)), x)
    agree(torch, drawn(lambda f, x: f.rrelu(x.t(), 0.1, 0.9, training=True)), x)
    agree(torch, drawn(lambda f, x: f.rrelu(x)), x)
    agree(torch, drawn(lambda f, x: f.rrelu_(x.clone(), training=True)), x)
    agree(torch, drawn(lambda f, x: f.rrelu(x.clone(), inplace=True)), x)
    same_error(torch, lambda m, x: m.nn.functional.rrelu(x, 0.5, 0.1, True), x)
    same_error(torch, lambda m, x: m.nn.functional.rrelu(x, 0.5, float("inf")), x)
    same_error(torch, lambda m, x: m.nn.functional.rrelu(x, float("nan"), 0.5), x)


def test_bfloat16_is_replaced_in_place():
    pytest.importorskip("ml_dtypes")
    x = convcore.tensor([-1.0, 2.0]).bfloat16()
    assert F.rrelu_(x, 0.5, 0.5) is x and x.tolist() == [-0.5, 2.0]
    assert F.rrelu(x, 0.5, 0.5, inplace=True) is x and x.tolist() == [-0.25, 2.0]


@pytest.mark.parametrize("bounds", [(-0.5, 0.2), (-0.3, -0.3)])
def test_negative_slopes_in_place_have_a_gradient_in_training_alone(torch, rng, bounds):
    x = rng.normal(size=(4, 6))
    agree(torch, drawn(lambda f, x: f.rrelu_(x.clone(), *bounds, True)), x)
    call = drawn(lambda f, x: f.rrelu(x.clone(), *bounds, inplace=True))
    agree(torch, lambda m, x: call(m, x.detach()), x)
    for m in (convcore, torch):
        out = call(m, m.from_numpy(x).requires_grad_()).sum()
        with pytest.raises(RuntimeError, match="triggered with a negative slope"):
            out.backward()


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("dim", [0, -1])
def test_samples_agree_with_pytorch(torch, rng, hard, dim):
    logits = rng.normal(size=(4, 6))
    call = drawn(lambda f, x: f.gumbel_softmax(x, 0.5, hard, dim=dim))
    agree(torch, call, logits, rtol=1e-6)
    with pytest.warns(UserWarning, match="eps"):
        F.gumbel_softmax(convcore.ones(2), eps=1e-3)


def test_slopes_lie_between_the_bounds():
    x = -convcore.ones(1000)
    slopes = -F.rrelu(x, 0.2, 0.4, training=True)
    assert 0.2 <= slopes.min().item() < 0.21
    assert 0.39 < slopes.max().item() <= 0.4
    assert F.rrelu(x[:1], 0.2, 0.4).item() == pytest.approx(-0.3)
    assert F.rrelu(-x, training=True).equal(-x)


def test_hard_samples_are_one_hot_and_follow_the_probabilities():
    logits = convcore.from_numpy(np.log([0.2, 0.8])).expand(4000, 2)
    chosen = F.gumbel_softmax(logits, hard=True)
    assert convcore.logical_or(chosen.isclose(chosen.round()), chosen.isnan()).all()
    assert chosen.mean(0)[1].item() == pytest.approx(0.8, abs=0.03)
