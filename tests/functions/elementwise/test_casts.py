"""Operands in another dtype: what is cast, what is left alone, and which casts are kept."""

from __future__ import annotations

import pytest

import convcore
from convcore.functions.elementwise import casts


def test_tensors_are_cast_wherever_they_stand():
    x, double = convcore.ones(2), convcore.ones(2).double()
    half, same, (inner,), text = casts.cast([x, double, (x,), "x"], convcore.float16)
    assert half.dtype is inner.dtype is convcore.float16
    assert same is double and text == "x"
    assert casts.cast(x, convcore.float32) is x
    index = convcore.tensor([1])
    assert casts.cast(index, convcore.float16) is index


def test_only_weights_are_kept_and_only_within_a_context():
    weight, x = convcore.ones(2, requires_grad=True), convcore.ones(2)
    assert casts.cast(weight, convcore.float16) is not casts.cast(weight, convcore.float16)
    with convcore.autocast("cpu", dtype=convcore.float16):
        kept = casts.lowered(weight)
        assert casts.lowered(weight) is kept
        assert casts.lowered(x) is not casts.lowered(x)
        with convcore.no_grad():
            assert not casts.lowered(weight).requires_grad
            weight.add_(1)
        assert casts.lowered(weight).tolist() == [2.0, 2.0]
    kept.sum().backward()
    assert weight.grad.dtype is convcore.float32


def test_gradients_flow_back_to_float32():
    pytest.importorskip("ml_dtypes")
    weight = convcore.ones(2, requires_grad=True)
    (casts.cast(weight, convcore.bfloat16) * 3).sum().backward()
    assert weight.grad.dtype is convcore.float32 and weight.grad.tolist() == [3.0, 3.0]


def test_tensors_are_found_in_lists():
    x = convcore.ones(1)
    assert len(list(casts.tensors([x, [x, (x,)], 3]))) == 3
