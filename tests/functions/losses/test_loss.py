"""Losses beside PyTorch's: values, gradients, node names and errors."""

from __future__ import annotations

import warnings

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
SHAPES = st.sampled_from([(), (4,), (2, 3), (2, 3, 2, 2)])
DTYPES = ["float16", "float32", "float64"]


# (name, further arguments, what the input and the target are: numbers, probabilities or logs)
POINTWISE = [
    ("mse_loss", {}, "number", "number"),
    ("l1_loss", {}, "number", "number"),
    ("smooth_l1_loss", {}, "number", "number"),
    ("smooth_l1_loss", {"beta": 0.3}, "number", "number"),
    ("smooth_l1_loss", {"beta": 0}, "number", "number"),
    ("huber_loss", {}, "number", "number"),
    ("huber_loss", {"delta": 0.3}, "number", "number"),
    ("binary_cross_entropy", {}, "probability", "probability"),
    ("binary_cross_entropy_with_logits", {}, "number", "probability"),
    ("kl_div", {}, "log", "probability"),
    ("kl_div", {"log_target": True}, "log", "log"),
]
IDS = [f"{name} {[*arguments.values()]}" for name, arguments, *_ in POINTWISE]


def values(rng, shape, dtype, kind):
    low, high = {"number": (-2, 2), "probability": (0.1, 0.9), "log": (-3, -0.1)}[kind]
    return np.asarray(rng.uniform(low, high, shape), dtype)


@pytest.fixture(autouse=True)
def kl_divs_mean_is_what_is_meant():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "reduction: 'mean' divides")
        yield


@pytest.mark.parametrize(("name", "arguments", "of", "to"), POINTWISE, ids=IDS)
@examples(10)
@given(SHAPES, st.sampled_from(DTYPES), REDUCTIONS, SEEDS)
def test_pointwise_loss_agrees_with_pytorch(
    torch, name, arguments, of, to, shape, dtype, reduction, seed
):
    rng = np.random.default_rng(seed)
    x, y = values(rng, shape, dtype, of), values(rng, shape, dtype, to)

    def function(m, x, y):
        return getattr(m.nn.functional, name)(x, y, reduction=reduction, **arguments)

    nodes = 0 if name == "kl_div" else 1
    agree(torch, function, x, y, seed=seed, nodes=nodes, rtol=TOLERANCE[dtype])


@pytest.mark.parametrize(("name", "arguments", "of", "to"), POINTWISE, ids=IDS)
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_pointwise_loss_gradients_are_those_of_finite_differences(
    rng, name, arguments, of, to, reduction
):
    tensors = [
        convcore.from_numpy(values(rng, (2, 3), "float64", kind)).requires_grad_()
        for kind in (of, to)
    ]
    function = lambda x, y: getattr(F, name)(x, y, reduction=reduction, **arguments)  # noqa: E731
    assert gradcheck(function, tensors)
    assert gradgradcheck(function, tensors)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_weighted_losses_agree_with_pytorch(torch, rng, reduction):
    x, p, t = rng.normal(size=(4, 3)), rng.uniform(0.1, 0.9, (4, 3)), rng.uniform(size=(4, 3))
    w, pos = rng.uniform(1, 2, 3), rng.uniform(1, 2, (4, 1))

    def weighted(m, p, t):
        weight = m.from_numpy(w)
        return m.nn.functional.binary_cross_entropy(p, t, weight, reduction=reduction)

    def with_logits(m, x, t):
        return m.nn.functional.binary_cross_entropy_with_logits(
            x, t, m.from_numpy(w), pos_weight=m.from_numpy(pos), reduction=reduction
        )

    agree(torch, weighted, p, t, rtol=1e-9)
    agree(torch, with_logits, x, t, rtol=1e-9)
    factors = rng.uniform(1, 2, (4, 3))
    for name in ("mse_loss", "l1_loss", "huber_loss"):

        def distance(m, x, t):
            loss, weight = getattr(m.nn.functional, name), m.from_numpy(factors)  # noqa: B023
            return loss(x, t, weight=weight, reduction=reduction)

        agree(torch, distance, x, t)


def test_losses_at_the_ends_agree_with_pytorch(torch):
    ends = np.array([0.0, 0.0, 1.0, 1.0, 0.5])
    targets = np.array([0.0, 1.0, 0.0, 1.0, 0.0])
    large = np.array([100.0, -100.0, 1000.0, -1000.0, 0.0])
    calls = [
        (lambda m, x, t: m.nn.functional.binary_cross_entropy(x, t), ends),
        (lambda m, x, t: m.nn.functional.binary_cross_entropy_with_logits(x, t), large),
        (lambda m, x, t: m.nn.functional.kl_div(x, t, reduction="batchmean"), large),
    ]
    for call, x in calls:
        found = []
        for lib in (convcore, torch):
            leaf = lib.from_numpy(x.copy()).requires_grad_()
            loss = call(lib, leaf, lib.from_numpy(targets))
            loss.backward()
            found.append((loss.item(), leaf.grad.numpy()))
        np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-12)
        np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-7)


def test_mse_loss_has_an_edge_to_the_target(torch):
    for lib in (convcore, torch):
        x = lib.ones(2, 3, requires_grad=True)
        edges = lib.nn.functional.mse_loss(x, lib.zeros(2, 3)).grad_fn.next_functions
        assert [edge[0] is None for edge in edges] == [False, True]


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
def test_losses_broadcast_with_a_warning(torch, rng, name):
    def function(m, x, y):
        with pytest.warns(UserWarning) as caught:
            loss = getattr(m.nn.functional, name)(x, y)
        texts.append(str(caught[0].message))
        if m is convcore:
            assert caught[0].filename == __file__
        return loss

    texts = []
    agree(torch, function, rng.normal(size=(4, 3)), rng.normal(size=3))
    assert texts[0] == texts[1]


# Large numbers, and errors


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("name", "options"),
    [("mse_loss", {}), ("smooth_l1_loss", {"beta": 0.3}), ("huber_loss", {"delta": 1.7})],
)
def test_distances_of_large_and_odd_numbers_agree_with_pytorch(
    torch, name, options, dtype, reduction, rng
):
    x, y = (3 * rng.standard_normal((2, 5, 30, 31))).astype(dtype)
    if reduction == "none":
        x.flat[:6] = [0, -0.0, np.inf, -np.inf, np.nan, 1]
        y.flat[:6] = [0, 0, 1, np.inf, 2, np.inf]
    found = []
    for m in (convcore, torch):
        a, b = (m.from_numpy(v.copy()).requires_grad_() for v in (x, y))
        loss = getattr(m.nn.functional, name)(a, b, reduction=reduction, **options)
        loss.backward(m.ones(loss.shape, dtype=loss.dtype) * 3)
        found.append([t.detach().numpy() for t in (loss, a.grad, b.grad)])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=32 * np.finfo(dtype).eps)


ERRORS = {
    "reduction": lambda m, f: f.mse_loss(m.ones(2), m.ones(2), reduction="most"),
    "no probability": lambda m, f: f.binary_cross_entropy(m.tensor([1.5]), m.ones(1)),
    "sizes of probabilities": lambda m, f: f.binary_cross_entropy(m.zeros(2, 3), m.ones(3)),
    "sizes of logits": lambda m, f: f.binary_cross_entropy_with_logits(m.zeros(2, 3), m.ones(3)),
    "integers": lambda m, f: f.mse_loss(m.tensor([1]), m.tensor([2])),
    "integers for huber_loss": lambda m, f: f.huber_loss(m.tensor([1]), m.tensor([2])),
    "integers for smooth_l1_loss": lambda m, f: f.smooth_l1_loss(m.tensor([1]), m.tensor([2])),
    "beta": lambda m, f: f.smooth_l1_loss(m.ones(2), m.ones(2), beta=-1.0),
    "delta": lambda m, f: f.huber_loss(m.ones(2), m.ones(2), delta=0.0),
    "no target probability": lambda m, f: f.binary_cross_entropy(m.ones(2), m.tensor([0, 1.5])),
    "a target of NaN": lambda m, f: f.binary_cross_entropy(m.ones(1), m.tensor([float("nan")])),
    "integer targets": lambda m, f: f.binary_cross_entropy(m.ones(1), m.tensor([1])),
    "integers for probabilities": lambda m, f: f.binary_cross_entropy(m.tensor([1]), m.ones(1)),
    "long weight": lambda m, f: f.binary_cross_entropy(m.ones(2), m.ones(2), m.ones(3, 2)),
    "other logit weight": lambda m, f: f.binary_cross_entropy_with_logits(
        m.ones(2, 3), m.ones(2, 3), m.ones(4)
    ),
    "long logit weight": lambda m, f: f.binary_cross_entropy_with_logits(
        m.ones(2), m.ones(2), pos_weight=m.ones(3, 2)
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_pytorchs(torch, name):
    same_error(torch, lambda m: ERRORS[name](m, m.nn.functional))


WEIGHTED = {
    "binary_cross_entropy": "weight",
    "binary_cross_entropy_with_logits": "weight",
    "binary_cross_entropy_with_logits of positives": "pos_weight",
}


@pytest.mark.parametrize("name", WEIGHTED)
def test_weights_that_want_a_gradient_are_refused(torch, name):
    function, argument = name.split()[0], WEIGHTED[name]

    def call(m):
        weight = m.ones(2, requires_grad=True)
        target = m.tensor([[0.0, 1.0]])
        return getattr(m.nn.functional, function)(m.ones(1, 2), target, **{argument: weight})

    same_error(torch, call)
    with convcore.no_grad():
        call(convcore)


def test_divergence_from_what_is_below_zero_is_nan(torch):
    for values in ([-1.0, 0.5], [float("nan"), 0.5]):
        values = [m.nn.functional.kl_div(m.zeros(2), m.tensor(values), reduction="none")
                  for m in (torch, convcore)]  # fmt: skip
        np.testing.assert_array_equal(*(value.numpy() for value in values))


NONSENSE = {
    "beta": lambda x, value: F.smooth_l1_loss(x, x, beta=value),
    "delta": lambda x, value: F.huber_loss(x, x, delta=value),
}


@pytest.mark.parametrize("name", NONSENSE)
@pytest.mark.parametrize("value", ["x", None, [1]])
def test_losses_name_the_number_that_is_none(name, value):
    with pytest.raises(TypeError, match=f"'{name}' must be .*, not {type(value).__name__}"):
        NONSENSE[name](convcore.ones(1, 1), value)


def test_losses_name_the_weight_that_is_no_tensor():
    x = convcore.ones(1, 2)
    for loss in (
        *(F.mse_loss, F.l1_loss, F.huber_loss),
        *(F.binary_cross_entropy, F.binary_cross_entropy_with_logits),
    ):
        with pytest.raises(TypeError, match="'weight' must be Tensor, not list"):
            loss(x, x, weight=[1.0, 2.0])


def test_losses_say_which_argument_is_no_tensor():
    x, array = convcore.ones(2), np.ones(2)
    for name in ("mse_loss", "l1_loss", "huber_loss", "kl_div", "binary_cross_entropy"):
        with pytest.raises(TypeError, match=f"{name}.*'target' .position 2. .*not numpy.ndarray"):
            getattr(F, name)(x, array)


@pytest.mark.parametrize("name", ["mse_loss", "smooth_l1_loss", "huber_loss"])
def test_gradient_beside_bools(name):
    target = convcore.tensor([2.0, 0.5], requires_grad=True)
    getattr(F, name)(convcore.tensor([True, False]), target, reduction="sum").backward()
    other = target.detach().requires_grad_()
    getattr(F, name)(convcore.tensor([1.0, 0.0]), other, reduction="sum").backward()
    assert target.grad.equal(other.grad)


@pytest.mark.parametrize("loss", ["binary_cross_entropy", "binary_cross_entropy_with_logits"])
def test_binary_targets_are_no_integers(torch, loss):
    def function(lib, x):
        return getattr(lib.nn.functional, loss)(x, lib.tensor([1, 0]))

    same_error(torch, function, np.array([0.5, 0.2]))
    with pytest.raises(RuntimeError) as caught:
        function(convcore, convcore.tensor([0.5, 0.2]))
    assert "target.float()" in str(caught.value)


@pytest.mark.parametrize("dtypes", ["float32 float64", "float64 float32", "float16 float32"])
def test_the_huber_loss_has_the_dtype_of_its_input(torch, dtypes):
    given, target = dtypes.split()
    for lib in (convcore, torch):
        x, y = lib.ones(3, dtype=getattr(lib, given)), lib.zeros(3, dtype=getattr(lib, target))
        assert lib.nn.functional.huber_loss(x, y).dtype is x.dtype


def test_the_second_derivative_of_a_squared_error_does_not_depend_on_nan(torch):
    agree(torch, lambda m, x, y: m.nn.functional.mse_loss(x, y), np.ones(2), np.array([np.nan, 3]))
