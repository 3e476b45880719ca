"""A linear map's gradient is its adjoint, to any order, under the names of both."""

from __future__ import annotations

import numpy as np
import pytest

import convcore
from convcore.functions._support.linear_map import linear_map

INDICES = convcore.tensor([2, 0])


def take(array, indices):
    return array[indices]


def put(array, indices):
    out = np.zeros(3)
    out[indices] = array
    return out


def taken(x, indices=INDICES):
    return linear_map(x, take, put, ("Take", "Put"), saved=(indices,))


def test_gradients_alternate_between_the_map_and_its_adjoint():
    x = convcore.tensor([1.0, 2.0, 4.0], dtype=convcore.float64, requires_grad=True)
    y = taken(x)
    assert y.tolist() == [4, 1]
    weights = convcore.tensor([3.0, 5.0], dtype=convcore.float64, requires_grad=True)
    (first,) = convcore.autograd.grad(y, x, weights, create_graph=True)
    assert first.tolist() == [5, 0, 3]
    (second,) = convcore.autograd.grad(
        first, weights, convcore.tensor([1.0, 10.0, 100.0]).double(), create_graph=True
    )
    assert second.tolist() == [100, 1]
    assert [type(t.grad_fn).__name__ for t in (y, first)] == ["TakeBackward0", "PutBackward0"]


def test_indices_changed_in_place_are_detected():
    indices = INDICES.clone()
    y = taken(convcore.ones(3, requires_grad=True), indices)
    indices.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_what_the_map_refuses_is_a_runtime_error():
    def refuse(array):
        raise ValueError("no such size")

    with pytest.raises(RuntimeError, match="no such size"):
        linear_map(convcore.ones(1), refuse, refuse, ("A", "B"))
