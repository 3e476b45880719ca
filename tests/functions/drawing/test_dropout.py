"""Dropout of elements and of channels: scale, draws, and what is in place, beside PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import same_error

import convcore
from convcore.nn import functional as F


def test_dropout_scales_what_it_keeps():
    x = convcore.full((1000,), 3.0, requires_grad=True)
    y = F.dropout(x, 0.25)
    kept = y.detach() != 0
    assert convcore.equal(y[kept], convcore.full((int(kept.sum()),), 4.0))
    assert 650 < kept.sum() < 850
    y.sum().backward()
    assert convcore.equal(x.grad, kept.float() / 0.75)


def test_dropout_is_a_product_with_an_edge_to_nothing(torch):
    for lib in (convcore, torch):
        x = lib.ones(2, 4, requires_grad=True)
        y = lib.nn.functional.dropout(x, 0.5)
        assert type(y.grad_fn).__name__ == "MulBackward0"
        assert [edge[0] is None for edge in y.grad_fn.next_functions] == [False, True]


def test_dropout_draws_from_the_default_generator():
    convcore.manual_seed(3)
    first = F.dropout(convcore.ones(50))
    second = F.dropout(convcore.ones(50))
    convcore.manual_seed(3)
    assert convcore.equal(F.dropout(convcore.ones(50)), first)
    assert not convcore.equal(first, second)


@pytest.mark.parametrize("name", ["dropout", "alpha_dropout"])
def test_dropout_at_rest_is_the_tensor_itself(name):
    x = convcore.ones(2, 3)
    assert getattr(F, name)(x, training=False) is x
    assert getattr(F, name)(x, p=0.0, training=True) is x
    assert getattr(F, name)(x, p=1.0, training=True).tolist() == [[0] * 3] * 2


def test_dropout_in_place_changes_the_tensor():
    x = convcore.ones(1000)
    assert F.dropout(x, 0.5, inplace=True) is x
    assert set(x.tolist()) == {0, 2}


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("dropout1d", (20, 30, 4)),
        ("dropout1d", (600, 4)),
        ("dropout2d", (20, 30, 2, 3)),
        ("dropout3d", (20, 30, 2, 2, 2)),
        ("dropout3d", (600, 2, 2, 2)),
    ],
)
@pytest.mark.parametrize("inplace", [False, True])
def test_dropout_of_channels_is_all_or_nothing(name, shape, inplace):
    x = convcore.ones(*shape)
    y = getattr(F, name)(x, 0.5, inplace=inplace)
    assert (y is x) == inplace
    assert y.shape == shape
    channels = y.numpy().reshape(600, -1)
    assert np.all(channels == channels[:, :1])
    assert 200 < np.count_nonzero(channels[:, 0]) < 400


def test_alpha_dropout_keeps_mean_and_variance():
    x = convcore.randn(100_000)
    y = F.alpha_dropout(x, 0.3, training=True)
    assert abs(y.mean().item()) < 0.05
    assert abs(y.var().item() - 1) < 0.05


@pytest.mark.parametrize("value", ["x", None, [1]])
def test_probability_that_is_no_number_is_named(value):
    with pytest.raises(TypeError, match=f"'p' must be Number, not {type(value).__name__}"):
        F.dropout(convcore.ones(2), p=value)


def test_probability_may_be_a_tensor_without_axes():
    results = []
    for p in (0.25, convcore.tensor(0.25)):
        x = convcore.linspace(-2, 2, 9, requires_grad=True)
        convcore.manual_seed(0)
        y = F.dropout(x, p)
        y.sum().backward()
        results.append((y.tolist(), x.grad.tolist()))
    assert results[0] == results[1]


def test_probability_beyond_1_is_refused_as_in_pytorch(torch):
    same_error(torch, lambda m: m.nn.functional.dropout(m.ones(2), 1.5))
    same_error(torch, lambda m: m.nn.functional.dropout1d(m.ones(2)))
    same_error(torch, lambda m: m.nn.functional.dropout1d(m.ones(1, 2, 3, 4)))


def test_coins_of_repeated_elements_are_drawn_in_the_order_of_the_axes():
    convcore.manual_seed(3)
    expected = F.dropout(convcore.ones(5, 3))
    convcore.manual_seed(3)
    assert convcore.equal(F.dropout(convcore.ones(1, 3).expand(5, 3)), expected)
