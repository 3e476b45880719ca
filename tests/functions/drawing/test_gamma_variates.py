"""Gamma and Dirichlet numbers: their moments, and their implicit gradients beside PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest

import convcore
from convcore.functions.drawing.gamma_variates import dirichlet, standard_gamma

ALPHA = [0.3, 1.0, 4.0, 40.0]


def leaf(values):
    return convcore.tensor(values, dtype=convcore.float64, requires_grad=True)


def test_numbers_have_the_moments_of_their_distribution():
    convcore.manual_seed(0)
    alpha = convcore.tensor(ALPHA, dtype=convcore.float64)
    drawn = standard_gamma(alpha.expand(5000, 4)).numpy()
    np.testing.assert_allclose(drawn.mean(0), ALPHA, rtol=0.06)
    np.testing.assert_allclose(drawn.var(0), ALPHA, rtol=0.15)
    shares = dirichlet(alpha.expand(5000, 4)).numpy()
    np.testing.assert_allclose(shares.sum(-1), 1)
    np.testing.assert_allclose(shares.mean(0), np.array(ALPHA) / sum(ALPHA), atol=0.01)


def test_numbers_and_gradients_are_pytorchs(torch):
    found = []
    for m, draw in ((convcore, standard_gamma), (torch, torch._standard_gamma)):
        m.manual_seed(7)
        alpha = m.tensor(ALPHA, dtype=m.float64, requires_grad=True)
        x = draw(alpha)
        x.sum().backward()
        found.append((x.detach().numpy(), alpha.grad.numpy()))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-12)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-3)  # PyTorch approximates


def test_gradient_of_an_exponential_is_in_closed_form():
    # Of the mean of gamma numbers, alpha, the gradient is 1 for each sample on average.
    convcore.manual_seed(0)
    alpha = leaf([1.5])
    standard_gamma(alpha.expand(4000)).mean().backward()
    assert alpha.grad.item() == pytest.approx(1, abs=0.05)


def test_gradient_of_a_share_is_that_of_its_mean():
    convcore.manual_seed(0)
    a = leaf([1.5, 2.0, 0.7])
    dirichlet(a.expand(4000, 3))[:, 0].mean().backward()
    total = 4.2
    expected = np.array([total - 1.5, -1.5, -1.5]) / total**2
    np.testing.assert_allclose(a.grad.numpy(), expected, atol=0.01)


def test_there_is_no_second_derivative():
    alpha = leaf(ALPHA)
    (slope,) = convcore.autograd.grad(standard_gamma(alpha).sum(), alpha, create_graph=True)
    with pytest.raises(RuntimeError, match="_standard_gamma_grad' is not implemented"):
        slope.sum().backward()
