"""Scaled dot-product attention: values, gradients, draws and errors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from against_torch import agree, same_error

import convcore
from convcore.autograd import gradcheck
from convcore.nn import functional as F


def numbers(rng, lead=(2, 4), keys=None, dtype="float64"):
    shapes = ((*lead, 3, 6), (*(keys or lead), 5, 6), (*(keys or lead), 5, 2))
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("scale", [None, 0.7])
def test_attention_is_its_formula(rng, scale):
    q, k, v = numbers(rng)
    mask = rng.normal(size=(3, 5))
    out = F.scaled_dot_product_attention(
        *map(convcore.from_numpy, (q, k, v, mask)), scale=scale
    ).numpy()
    weights = softmax(q @ k.swapaxes(-1, -2) * (scale or 1 / math.sqrt(6)) + mask)
    np.testing.assert_allclose(out, weights @ v, rtol=1e-11)


@pytest.mark.parametrize("lead", [(), (2,), (2, 4)])
@pytest.mark.parametrize("mask", [None, "bool", "float", "causal", "hidden rows"])
def test_attention_agrees_with_pytorch(torch, rng, lead, mask):
    q, k, v = numbers(rng, lead)
    masks = {"bool": rng.random((3, 5)) < 0.6, "float": rng.normal(size=(3, 5))}
    masks["bool"][:, 0] = True
    masks["hidden rows"] = masks["bool"] & np.array([[True], [False], [True]])
    given = (masks[mask],) if mask in masks else ()

    def function(lib, *given):
        given = [x if hasattr(x, "dim") else lib.from_numpy(x) for x in given]
        return lib.nn.functional.scaled_dot_product_attention(*given, is_causal=mask == "causal")

    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        agree(torch, function, q, k, v, *given, rtol=1e-9)


def test_a_query_that_sees_no_key_gives_zeros(rng):
    q, k, v = (convcore.from_numpy(x).requires_grad_() for x in numbers(rng))
    out = F.scaled_dot_product_attention(q, k, v, convcore.zeros(3, 5, dtype=convcore.bool))
    out.sum().backward()
    assert not out.any() and not any(x.grad.any() for x in (q, k, v))


def test_fewer_heads_for_groups_of_queries(torch, rng):
    q, k, v = numbers(rng, (2, 6), (2, 2))

    def function(lib, q, k, v):
        attention = lib.nn.functional.scaled_dot_product_attention
        return attention(q, k, v, enable_gqa=True)

    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        agree(torch, function, q, k, v, rtol=1e-9)
    with pytest.raises(RuntimeError, match="must divide the number of heads"):
        function(convcore, *(convcore.ones(2, heads, 3, 4) for heads in (6, 4, 4)))


def test_dropout_draws_what_pytorch_draws(torch, rng):
    arrays, found = numbers(rng, dtype="float32"), []
    for lib in (convcore, torch):
        lib.manual_seed(3)
        given = [lib.from_numpy(x) for x in arrays]
        out = lib.nn.functional.scaled_dot_product_attention(*given, dropout_p=0.4)
        found.append((out.numpy(), lib.rand(2).numpy()))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(found[0][1], found[1][1])


def test_gradcheck(rng):
    given = [convcore.from_numpy(x).requires_grad_() for x in numbers(rng, (2,))]
    assert gradcheck(lambda *x: F.scaled_dot_product_attention(*x, is_causal=True), given)


@pytest.mark.parametrize(
    "function",
    [
        lambda lib, f, q: f(q, q.double(), q),
        lambda lib, f, q: f(q[0, 0], q, q),
        lambda lib, f, q: f(q, q, q, attn_mask=lib.ones(3, 3).long()),
        lambda lib, f, q: f(q, q, q, attn_mask=lib.ones(3, 3).double()),
        lambda lib, f, q: f(q, q, q, attn_mask=lib.ones(3, 3), is_causal=True),
        lambda lib, f, q: f(q, q, q, attn_mask=lib.ones(2, 3)),
        lambda lib, f, q: f(q, q[..., :2], q),
        lambda lib, f, q: f(q, q[:, :2], q),
    ],
)
def test_errors_are_pytorchs(torch, function):
    def called(lib, q):
        return function(lib, lib.nn.functional.scaled_dot_product_attention, q)

    same_error(torch, called, np.ones((2, 3, 4), "f4"))


def test_integers_have_no_attention():
    q = convcore.ones(2, 3, 4).long()
    with pytest.raises(RuntimeError, match="of floats"):
        F.scaled_dot_product_attention(q, q, q)
