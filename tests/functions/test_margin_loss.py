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
    agree(torch, lambda m, x, s: f(m).soft_margin_loss(x, s.detach(), **r), x, SIGNS, rtol=1e-9)
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
    distance = lambda x, y: (x - y).abs().sum(-1)  # noqa: E731
    agree(
        torch,
        lambda m, *t: f(m).triplet_margin_with_distance_loss(
            *t, distance_function=distance, **options
        ),
        *triplet,
    )


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_losses_of_classes_agree_with_pytorch(torch, rng, reduction):
    x, y, weight = rng.normal(size=(4, 5)), np.array([0, 4, 2, 2]), rng.uniform(size=5)
    r = {"reduction": reduction}
    f = lambda m: m.nn.functional  # noqa: E731
    for p in (1, 2):
        multi = lambda m, x, y, w, p=p: f(m).multi_margin_loss(  # noqa: E731
            x, y, p, 0.8, w.detach(), **r
        )
        first(torch, multi, x, y, weight)
    first(torch, lambda m, x, y: f(m).multi_margin_loss(x, y, **r), x[0].copy(), y[1:2].reshape(()))
    labels = np.array([[3, 0, -1, 1, 2], [-1] * 5, [0, 1, 2, 3, 4], [2, -1, 2, 0, 0]])
    first(torch, lambda m, x, y: f(m).multilabel_margin_loss(x, y, **r), x, labels)
    targets = (rng.uniform(size=(4, 5)) > 0.5).astype(float)
    agree(
        torch,
        lambda m, x, t, w: f(m).multilabel_soft_margin_loss(x, t.detach(), w.detach(), **r),
        *(x, targets, weight),
        rtol=1e-9,
    )


def first(torch, call, *arrays):
    """Compare values and first gradients: PyTorch has no second ones."""
    found = []
    for m in (convcore, torch):
        x, *others = (m.from_numpy(array.copy()) for array in arrays)
        loss = call(m, x.requires_grad_(), *others)
        loss.sum().backward()
        found.append((loss.detach().numpy(), x.grad.numpy()))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


def test_a_loss_without_a_batch_has_its_targets_shape(lib):
    x = lib.tensor([0.0, 1.0, 0.5])
    for target, shape in ((lib.tensor(1), ()), (lib.tensor([1]), (1,))):
        assert lib.nn.functional.multi_margin_loss(x, target, reduction="none").shape == shape


def test_errors_are_pytorchs(torch):
    x, y = np.ones((2, 3)), np.array([0, 3])
    f = lambda m: m.nn.functional  # noqa: E731
    same_error(torch, lambda m, x, y: f(m).multi_margin_loss(x, y), x, y)
    same_error(torch, lambda m, x, y: f(m).multi_margin_loss(x, y, 3), x, y)
    same_error(torch, lambda m, x, y: f(m).multi_margin_loss(x, y[:1]), x, y)
    same_error(torch, lambda m, x: f(m).cosine_embedding_loss(x, x, x), x)
    same_error(torch, lambda m, x: f(m).triplet_margin_loss(x, x, x[0]), x)
    same_error(torch, lambda m, x: f(m).triplet_margin_loss(x, x, x, margin=-1.0), x)
    same_error(torch, lambda m, x: f(m).margin_ranking_loss(x, x[0], x), x)
    same_error(torch, lambda m, x, y: f(m).multilabel_margin_loss(x[0, :2], y), x, y)


def test_values_by_hand():
    x = convcore.tensor([0.5, 2.0])
    sign = convcore.tensor([1.0, -1.0])
    assert F.hinge_embedding_loss(x, sign, reduction="none").tolist() == [0.5, 0]
    assert F.margin_ranking_loss(x, x + 1, sign, reduction="none").tolist() == [1, 0]
    assert F.multi_margin_loss(x, convcore.tensor(0)).item() == pytest.approx(2.5 / 2)
    assert F.multilabel_margin_loss(x, convcore.tensor([0, -1])).item() == pytest.approx(2.5 / 2)


def test_gradients_are_those_of_finite_differences(rng):
    x = convcore.from_numpy(rng.normal(size=(3, 4))).requires_grad_()
    y = convcore.tensor([1, 0, 3])
    assert gradcheck(lambda x: F.multi_margin_loss(x, y, 2), (x,))
    assert gradcheck(lambda x: F.triplet_margin_loss(x, x.sin(), x.cos()), (x,))


def test_pairs_that_are_a_margin_apart_have_no_gradient(torch):
    for lib in (convcore, torch):
        f, x = lib.nn.functional, lib.tensor([[0.0, -1, 0]], requires_grad=True)
        f.multi_margin_loss(x, lib.tensor([0])).backward()
        f.multilabel_margin_loss(x, lib.tensor([[0, -1, 2]])).backward()
        assert x.grad[0].tolist() == pytest.approx([-2 / 3, 0, 2 / 3])
