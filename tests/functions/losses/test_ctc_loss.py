"""CTC beside PyTorch's, beside all alignments counted one by one, and its gradient."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from against_torch import same_error

import convcore
from convcore.autograd import gradcheck
from convcore.nn import functional as F

INPUTS, LENGTHS = (6, 4, 6), (3, 2, 0)


def logits(rng, steps=6, batch=3, classes=4):
    return rng.normal(size=(steps, batch, classes))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("blank", [0, 3])
def test_loss_and_gradient_agree_with_pytorch(torch, rng, reduction, joined, blank):
    x = logits(rng)
    targets = (
        np.array([[1, 1, 2], [2, 1, 0], [0, 0, 0]])
        if blank == 0
        else np.array([[0, 0, 2], [2, 1, 0], [0, 0, 0]])
    )
    if joined:
        targets = np.concatenate([row[:n] for row, n in zip(targets, LENGTHS, strict=True)])
    found = []
    for m in (convcore, torch):
        leaf = m.from_numpy(x.copy()).requires_grad_()
        lengths = m.tensor(INPUTS), m.tensor(LENGTHS)
        options = {"blank": blank, "reduction": reduction}
        loss = m.nn.functional.ctc_loss(
            leaf.log_softmax(2), m.from_numpy(targets), *lengths, **options
        )
        loss.sum().backward()
        found.append((loss.detach().numpy(), leaf.grad.numpy()))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_loss_is_that_of_all_alignments(rng):
    x = convcore.from_numpy(logits(rng, 4, 1, 3)).log_softmax(2)
    target = [1, 2]
    total = 0.0
    for path in itertools.product(range(3), repeat=4):
        merged = [k for k, _ in itertools.groupby(path) if k != 0]
        if merged == target:
            total += math.exp(sum(x[t, 0, k].item() for t, k in enumerate(path)))
    loss = F.ctc_loss(x, convcore.tensor([target]), (4,), (2,), reduction="sum")
    assert loss.item() == pytest.approx(-math.log(total))


def test_infinite_losses_count_as_nothing_if_asked(torch):
    for m in (convcore, torch):
        x = m.zeros(2, 1, 3, requires_grad=True)
        targets = m.tensor([[1, 1, 2]])
        arguments = targets, (2,), (3,)
        loss = m.nn.functional.ctc_loss(x.log_softmax(2), *arguments, reduction="none")
        assert loss.tolist() == [math.inf]
        loss = m.nn.functional.ctc_loss(x.log_softmax(2), *arguments, zero_infinity=True)
        loss.backward()
        assert loss.item() == 0
        assert x.grad.abs().sum().item() == 0


def test_an_unbatched_sequence_agrees_with_pytorch(torch, rng):
    x = logits(rng, 5, 1, 3)[:, 0]
    found = []
    for m in (convcore, torch):
        leaf = m.from_numpy(x.copy()).requires_grad_()
        length = m.tensor(5), m.tensor(2)
        loss = m.nn.functional.ctc_loss(leaf.log_softmax(1), m.tensor([1, 2]), *length)
        loss.backward()
        found.append([loss.item(), *leaf.grad.flatten().tolist()])
    assert found[0] == pytest.approx(found[1])


def test_errors_are_pytorchs(torch, rng):
    x, y = logits(rng), np.array([[1, 2], [2, 2], [1, 1]])

    def call(*lengths, **options):
        return lambda m, x, y: m.nn.functional.ctc_loss(x, y, *lengths, **options)

    same_error(torch, call((7, 6, 6), (2, 2, 2)), x, y)
    same_error(torch, call((6, 6, 6), (2, 3, 2)), x, y)
    same_error(torch, call((6, 6), (2, 2, 2)), x, y)
    for lengths in ([6.0, 6.0, 6.0], [2, 2, 2]), ([6, 6, 6], [2.0, 2.0, 2.0]):
        same_error(
            torch,
            lambda m, x, y, n=lengths: m.nn.functional.ctc_loss(x, y, *map(m.tensor, n)),
            *(x, y),
        )
    same_error(torch, call((), ()), x[:0, :0], y[:0])
    same_error(torch, call((6, 6, 6), (2, 2)), x, y)
    same_error(torch, call((6, 6, 6), (2, 2, 2), blank=4), x, y)
    same_error(torch, call((6, 6, -1), (2, 2, 2)), x, y)


def test_gradient_is_that_of_finite_differences_and_has_no_further_one(rng):
    x = convcore.from_numpy(logits(rng)).requires_grad_()
    targets = convcore.tensor([[1, 1, 2], [2, 1, 0], [3, 0, 0]])

    def loss(x):
        return F.ctc_loss(x.log_softmax(2), targets, INPUTS, LENGTHS)

    assert gradcheck(loss, (x,))
    (grad,) = convcore.autograd.grad(loss(x), x, create_graph=True)
    with pytest.raises(RuntimeError, match="is not implemented"):
        grad.sum().backward()


@pytest.mark.parametrize("wrong", [-1, 4, 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("flat", [True, False])
def test_labels_that_are_no_class_are_refused(wrong, flat):
    scores = convcore.randn(6, 2, 4).log_softmax(2)
    targets = convcore.tensor([[1, 2, wrong], [3, 1, -1]])  # the last one is beyond its length
    if flat:
        targets = convcore.tensor([1, 2, wrong, 3, 1])
    with pytest.raises(RuntimeError, match=f"targets must be from 0 to 3.* got {wrong}$"):
        F.ctc_loss(scores, targets, [6, 6], [3, 2])
    if not flat:
        assert F.ctc_loss(scores, targets, [6, 6], [2, 2]).isfinite()
