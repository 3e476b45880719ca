"""Losses with margins beside PyTorch's: values, gradients, errors; and by their formulas."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree, same_error

import convcore
from convcore.autograd import gradcheck
from convcore.nn import functional as F

REDUCTIONS = ("mean", "sum", "none")
SIGNS = np.array([1.0, -1, 1, -1])


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_losses_of_pairs_agree_with_pytorch(torch, rng, reduction):
    x, y = rng.normal(size=4), rng.normal(size=4)
    r = {"reduction": reduction}
    f = lambda m: m.nn.functional  # noqa: E731
    agree(
        torch, lambda m, x, y, s: f(m).margin_ranking_loss(x, y, s.detach(), 0.3, **r), x, y, SIGNS
    )
    agree(torch, lambda m, x, s: f(m).hinge_embedding_loss(x, s.detach(), **r), x, SIGNS)
    a, b = rng.normal(size=(4, 3)), rng.normal(size=(4, 3))
    cosine = lambda m, a, b, s: f(m).cosine_embedding_loss(a, b, s.detach(), 0.1, **r)  # noqa: E731
    agree(torch, cosine, a, b, SIGNS, rtol=1e-9)
    agree(torch, cosine, a[0].copy(), b[0].copy(), SIGNS[1:2].reshape(()), rtol=1e-9)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("swap", [False, True])
def test_losses_of_triplets_agree_with_pytorch(torch, rng, reduction, swap):
    triplet = [rng.normal(size=(4, 3)) for _ in range(3)]
    options = {"swap": swap, "reduction": reduction, "margin": 0.7}
    f = lambda m: m.nn.functional  # noqa: E731
    agree(torch, lambda m, *t: f(m).triplet_margin_loss(*t, p=2, **options), *triplet, rtol=1e-9)


def test_errors_are_pytorchs(torch):
    x = np.ones((2, 3))
    f = lambda m: m.nn.functional  # noqa: E731
    same_error(torch, lambda m, x: f(m).cosine_embedding_loss(x, x, x), x)
    same_error(torch, lambda m, x: f(m).triplet_margin_loss(x, x, x[0]), x)
    same_error(torch, lambda m, x: f(m).triplet_margin_loss(x, x, x, margin=-1.0), x)
    same_error(torch, lambda m, x: f(m).margin_ranking_loss(x, x[0], x), x)


def test_values_by_hand():
    x = convcore.tensor([0.5, 2.0])
    sign = convcore.tensor([1.0, -1.0])
    assert F.hinge_embedding_loss(x, sign, reduction="none").tolist() == [0.5, 0]
    assert F.margin_ranking_loss(x, x + 1, sign, reduction="none").tolist() == [1, 0]


def test_gradients_are_those_of_finite_differences(rng):
    x = convcore.from_numpy(rng.normal(size=(3, 4))).requires_grad_()
    assert gradcheck(lambda x: F.triplet_margin_loss(x, x.sin(), x.cos()), (x,))
