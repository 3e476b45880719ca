"""Negative log-likelihoods beside PyTorch's, and by their formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
from against_torch import agree, same_error
from edges import agree_at_first_order

import convcore
from convcore.autograd import gradcheck
from convcore.nn import functional as F


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("full", [False, True])
def test_likelihoods_agree_with_pytorch(torch, rng, reduction, full):
    x, counts = rng.uniform(0.5, 2, (3, 4)), rng.integers(0, 5, (3, 4)).astype(float)
    options = {"full": full, "reduction": reduction}
    for log_input in (False, True):
        poisson = lambda m, x, t, log=log_input: m.nn.functional.poisson_nll_loss(  # noqa: E731
            x, t.detach(), log, **options
        )
        agree(torch, poisson, x, counts, rtol=1e-9)
    gaussian = lambda m, x, t, v: m.nn.functional.gaussian_nll_loss(x, t, v, **options)  # noqa: E731
    for var in (rng.uniform(size=(3, 4)), rng.uniform(size=3), rng.uniform(size=(3, 1))):
        agree(torch, gaussian, x, counts, var, rtol=1e-9)
    agree(torch, gaussian, x, counts, 0.5, rtol=1e-9)


def test_errors_are_pytorchs(torch):
    x = np.ones((2, 3))
    f = lambda m: m.nn.functional  # noqa: E731
    same_error(torch, lambda m, x: f(m).gaussian_nll_loss(x, x, -x), x)
    same_error(torch, lambda m, x: f(m).gaussian_nll_loss(x, x, -1.0), x)
    same_error(torch, lambda m, x: f(m).gaussian_nll_loss(x, x, m.ones(5)), x)
    same_error(torch, lambda m, x: f(m).gaussian_nll_loss(x, x, x, reduction="all"), x)
    for dtype, eps in (("bool", 1e-6), ("bool", 1), ("int32", 1e-6), ("uint8", 0.5)):
        same_error(
            torch,
            lambda m, x, dtype=dtype, eps=eps: f(m).gaussian_nll_loss(
                x, x, m.ones(2, 3, dtype=getattr(m, dtype)), eps=eps
            ),
            x,
        )
    same_error(torch, lambda m, x: f(m).poisson_nll_loss(x, x, reduction="all"), x)


def test_a_gaussian_is_the_logarithm_of_its_density():
    x, mean, var = (convcore.tensor(v, dtype=convcore.float64) for v in (1.5, 1.0, 0.25))
    density = math.exp(-0.5) / math.sqrt(2 * math.pi * 0.25)
    found = F.gaussian_nll_loss(mean, x, var, full=True)
    assert found.item() == pytest.approx(-math.log(density))
    least = F.gaussian_nll_loss(mean, mean, convcore.zeros_like(var), eps=0.1)
    assert least.item() == pytest.approx(math.log(0.1) / 2)


def test_gradients_are_those_of_finite_differences(rng):
    x, t, v = (convcore.from_numpy(rng.uniform(0.5, 1, (3,))).requires_grad_() for _ in range(3))
    assert gradcheck(F.gaussian_nll_loss, (x, t, v))
    assert gradcheck(lambda x, t: F.poisson_nll_loss(x, t, False), (x, t.detach()))


def test_an_infinite_variance_is_an_infinite_loss(torch):
    def call(m, var):
        return m.nn.functional.gaussian_nll_loss(m.zeros(3), m.ones(3), var, reduction="none")

    agree_at_first_order(torch, call, np.array([np.inf, 1.0, 0.0], "f4"))
