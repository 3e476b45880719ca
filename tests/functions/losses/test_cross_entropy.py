"""Likelihoods of classes, and cross entropy, beside PyTorch's: values, gradients, errors."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree, same_error
from elements import SEEDS, TOLERANCE
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

import convcore
from convcore.autograd import gradcheck, gradgradcheck
from convcore.nn import functional as F

REDUCTIONS = st.sampled_from(["mean", "sum", "none"])
DTYPES = ["float16", "float32", "float64"]


@st.composite
def class_problems(draw):
    """Draw scores, targets of which some are ignored, weights or None, and the seed of it all."""
    seed = draw(SEEDS)
    rng = np.random.default_rng(seed)
    batch = draw(st.sampled_from([(), (1,), (4,), (3, 2), (2, 2, 3)]))
    n_classes = draw(st.integers(1, 5))
    dtype = draw(st.sampled_from(DTYPES))
    shape = (*batch[:1], n_classes, *batch[1:])
    scores = np.asarray(rng.normal(size=shape), dtype)
    ignored = draw(st.sampled_from([-100, 0]))
    targets = np.asarray(rng.integers(0, n_classes, batch))
    if draw(st.booleans()) and batch:
        targets = np.where(rng.random(batch) < 0.3, ignored, targets)
        targets.reshape(-1)[0] = n_classes - 1  # so that something counts
    weights = np.asarray(rng.uniform(0.5, 2, n_classes), dtype) if draw(st.booleans()) else None
    return scores, targets, weights, ignored, seed


def counts(targets, ignored):
    return bool(np.any(targets != ignored))


@examples(60)
@given(class_problems(), REDUCTIONS)
def test_nll_loss_agrees_with_pytorch(torch, problem, reduction):
    scores, targets, weights, ignored, seed = problem

    def function(m, x):
        weight = None if weights is None else m.from_numpy(weights)
        return m.nn.functional.nll_loss(
            x, m.from_numpy(targets), weight, ignore_index=ignored, reduction=reduction
        )

    if counts(targets, ignored) or reduction != "mean":
        nodes = int(scores.ndim in (1, 2, 4))  # PyTorch reshapes the others
        rtol = TOLERANCE[scores.dtype.name]
        agree(torch, function, scores, seed=seed, nodes=nodes, rtol=rtol)


@examples(60)
@given(class_problems(), REDUCTIONS, st.sampled_from([0.0, 0.1, 1.0]))
def test_cross_entropy_agrees_with_pytorch(torch, problem, reduction, smoothing):
    scores, targets, weights, ignored, seed = problem

    def function(m, x):
        weight = None if weights is None else m.from_numpy(weights)
        return m.nn.functional.cross_entropy(
            x,
            m.from_numpy(targets),
            weight,
            ignore_index=ignored,
            reduction=reduction,
            label_smoothing=smoothing,
        )

    if counts(targets, ignored) or reduction != "mean":
        nodes = 2 if smoothing == 0 and scores.ndim in (1, 2, 4) else 0
        rtol = TOLERANCE[scores.dtype.name]
        agree(torch, function, scores, seed=seed, nodes=nodes, rtol=rtol)


@examples(30)
@given(class_problems(), REDUCTIONS, st.sampled_from([0.0, 0.1]))
def test_cross_entropy_with_probabilities_agrees_with_pytorch(torch, problem, reduction, smoothing):
    scores, _, weights, _, seed = problem
    rng = np.random.default_rng(seed)
    shares = np.asarray(rng.uniform(0, 1, scores.shape), scores.dtype)

    def function(m, x, shares):
        weight = None if weights is None else m.from_numpy(weights)
        return m.nn.functional.cross_entropy(
            x, shares, weight, reduction=reduction, label_smoothing=smoothing
        )

    agree(torch, function, scores, shares, seed=seed, rtol=TOLERANCE[scores.dtype.name])


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_cross_entropy_gradients_are_those_of_finite_differences(rng, reduction, smoothing):
    x = convcore.from_numpy(rng.normal(size=(3, 4, 2))).requires_grad_()
    target = convcore.from_numpy(rng.integers(0, 4, (3, 2)))
    weight = convcore.from_numpy(rng.uniform(1, 2, 4))

    def function(x):
        return F.cross_entropy(
            x, target, weight, ignore_index=1, reduction=reduction, label_smoothing=smoothing
        )

    assert gradcheck(function, (x,))
    assert gradgradcheck(function, (x,))


def test_cross_entropy_of_ignored_targets_alone_is_nan(torch):
    for lib in (convcore, torch):
        x, target = lib.zeros(2, 3), lib.tensor([-100, -100])
        assert lib.nn.functional.cross_entropy(x, target).isnan()
        assert lib.nn.functional.cross_entropy(x, target, reduction="sum") == 0


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_ignored_targets_alone_have_a_gradient_of_zero(torch, reduction, weighted):
    target = np.array([-100, -100])

    def function(m, x):
        weight = m.tensor([1.0, 2.0, 3.0], dtype=x.dtype) if weighted else None
        return m.nn.functional.cross_entropy(x, m.tensor(target), weight, reduction=reduction)

    agree(torch, function, np.ones((2, 3)))


def test_nll_loss_of_an_ignored_target_is_a_positive_zero():
    loss = F.nll_loss(convcore.ones(2, 3), convcore.tensor([0, -100]), reduction="none")
    assert str(loss) == "tensor([-1., 0.])".replace(" 0", "  0")


def test_nll_loss_of_an_ignored_infinity_is_zero():
    x = convcore.tensor([[-np.inf, 0.0], [-1.0, -2.0]], requires_grad=True)
    loss = F.nll_loss(x, convcore.tensor([0, 1]), ignore_index=0, reduction="sum")
    loss.backward()
    assert loss.item() == 2
    assert x.grad.tolist() == [[0, 0], [0, -1]]


def test_targets_may_be_bytes(torch, rng):
    x, target = rng.normal(size=(3, 4)), np.array([0, 3, 1], np.uint8)
    agree(torch, lambda m, x, t: m.nn.functional.cross_entropy(x, t), x, target)


def test_changing_the_target_in_place_is_noticed():
    x, target = convcore.zeros(2, 3, requires_grad=True), convcore.tensor([0, 1])
    loss = F.nll_loss(x, target)
    target.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_cross_entropy_learns_a_class():
    x = convcore.zeros(1, 3, requires_grad=True)
    F.cross_entropy(x, convcore.tensor([2])).backward()
    assert convcore.allclose(x.grad, convcore.tensor([[1 / 3, 1 / 3, -2 / 3]]))


SCORES = [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]


ERRORS = {
    "a class too many": lambda m, f: f.nll_loss(m.tensor(SCORES), m.tensor([1, 5])),
    "a negative class": lambda m, f: f.cross_entropy(m.tensor(SCORES), m.tensor([1, -1])),
    "a class of pixels": lambda m, f: f.nll_loss(
        m.zeros(1, 2, 2, 2), m.full((1, 2, 2), 7, dtype=m.int64)
    ),
    "float targets": lambda m, f: f.cross_entropy(m.tensor(SCORES), m.tensor([1.0, 0.0])),
    "int32 targets": lambda m, f: f.nll_loss(m.tensor(SCORES), m.tensor([1, 0], dtype=m.int32)),
    "batch": lambda m, f: f.nll_loss(m.tensor(SCORES), m.tensor([1])),
    "weight": lambda m, f: f.nll_loss(m.tensor(SCORES), m.tensor([1, 0]), m.ones(2)),
    "several targets": lambda m, f: f.nll_loss(m.tensor(SCORES), m.tensor([[1], [0]])),
    "pixels": lambda m, f: f.nll_loss(m.zeros(1, 2, 3, 3), m.zeros(1, 3, 4, dtype=m.int64)),
    "samples": lambda m, f: f.nll_loss(m.zeros(1, 2, 3), m.zeros(1, 4, dtype=m.int64)),
    "a number": lambda m, f: f.nll_loss(m.tensor(1.0), m.tensor(0)),
    "one sample": lambda m, f: f.nll_loss(m.zeros(3), m.tensor([0, 1])),
    "smoothing": lambda m, f: f.cross_entropy(
        m.tensor(SCORES), m.tensor([1, 0]), label_smoothing=2.0
    ),
    "integers for likelihoods": lambda m, f: f.nll_loss(m.tensor([[1, 2]]), m.tensor([0])),
    "weight of probabilities": lambda m, f: f.cross_entropy(m.ones(2, 3), m.ones(2, 3), m.ones(1)),
    "ignored class of probabilities": lambda m, f: f.cross_entropy(
        m.ones(2, 3), m.ones(2, 3), ignore_index=0
    ),
    "no classes": lambda m, f: f.cross_entropy(m.ones(2, 0), m.tensor([0, 0])),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_pytorchs(torch, name):
    same_error(torch, lambda m: ERRORS[name](m, m.nn.functional))


@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss"])
def test_weights_that_want_a_gradient_are_refused(torch, name):
    def call(m):
        weight = m.ones(2, requires_grad=True)
        return getattr(m.nn.functional, name)(m.ones(1, 2), m.tensor([1]), weight=weight)

    same_error(torch, call)
    with convcore.no_grad():
        call(convcore)


NONSENSE = {
    "label_smoothing": lambda x, value: F.cross_entropy(x, x, label_smoothing=value),
    "ignore_index": lambda x, value: F.cross_entropy(x[:, 0], x[0, 0].long(), ignore_index=value),
}


@pytest.mark.parametrize("name", NONSENSE)
@pytest.mark.parametrize("value", ["x", None, [1]])
def test_losses_name_the_number_that_is_none(name, value):
    with pytest.raises(TypeError, match=f"'{name}' must be .*, not {type(value).__name__}"):
        NONSENSE[name](convcore.ones(1, 1), value)


def test_losses_name_the_weight_that_is_no_tensor():
    x, target = convcore.ones(1, 2), convcore.tensor([1])
    for loss, y in ((F.nll_loss, target), (F.cross_entropy, target), (F.cross_entropy, x)):
        with pytest.raises(TypeError, match="'weight' must be Tensor, not list"):
            loss(x, y, weight=[1.0, 2.0])


def test_losses_say_which_argument_is_no_tensor():
    for name in ("nll_loss", "cross_entropy"):
        with pytest.raises(TypeError, match=f"{name}.*'input'.* must be Tensor, not list"):
            getattr(F, name)([1.0, 2.0], convcore.tensor(0))


def test_cross_entropy_of_no_classes_is_no_number(lib):
    loss = lib.nn.functional.cross_entropy(lib.ones(5, 0), lib.ones(5, 0))
    assert str(loss.item()) in ("nan", "-0.0", "0.0")


@pytest.mark.parametrize(
    ("scores", "target", "dtype"),
    [
        ((3,), (3,), "int64"),
        ((4, 10), (4, 10), "int64"),
        ((4, 10), (4, 1), "float32"),
        ((4, 10), (4, 1), "int32"),
        ((4, 10), (5, 1), "float32"),
        ((4, 10), (4,), "bool"),
        ((4, 10, 3), (4, 2), "float32"),
        ((4, 10, 3), (4, 10, 3), "int64"),
        ((4, 10, 3, 3), (4, 3), "float32"),
        ((4, 10, 3, 3), (4, 3, 2), "int64"),
        ((10,), (2,), "float32"),
    ],
)
def test_target_is_refused_for_what_pytorch_looks_at_first(torch, scores, target, dtype):
    def loss(m):
        classes = m.zeros(target, dtype=getattr(m, dtype))
        return m.nn.functional.cross_entropy(m.zeros(scores), classes)

    same_error(torch, loss)
