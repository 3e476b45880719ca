"""Logarithms safe at their edges, and the inverse of erf, beside PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree, same_error
from elements import drawn

import convcore
from convcore.autograd import gradcheck, gradgradcheck

NAN, INF = float("nan"), float("inf")


EDGES = np.array([NAN, 0.0, INF, -INF, -1.0, 1.0, 0.5])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_logarithms_agree_with_pytorch(torch, rng, seed, dtype):
    rtol = 2e-2 if dtype == "float16" else 1e-4
    x, y = drawn(rng, (3, 4), dtype, 0.5, 3), drawn(rng, (4,), dtype, 0.5, 3)
    same = {"seed": seed, "nodes": 1, "rtol": rtol}
    agree(torch, lambda m, x, y: m.logaddexp(x, y), x, y, **same)
    agree(torch, lambda m, x, y: x.xlogy(y), x, y, **same)
    agree(torch, lambda m, x: m.xlogy(2, x), x, **same)
    agree(torch, lambda m, x: m.xlogy(x, 2.5), x, **same)
    agree(torch, lambda m, x: m.erfinv(x), drawn(rng, (3, 2), dtype, -0.8, 0.8), **same)


def test_logarithms_at_the_edges_agree_with_pytorch(torch):
    x, y = (a.reshape(-1).copy() for a in np.meshgrid(EDGES, EDGES))
    for call in (lambda m, x, y: m.logaddexp(x, y), lambda m, x, y: m.xlogy(x, y)):
        agree(torch, lambda m, x, y, call=call: call(m, x.detach(), y.detach()), x, y)
    agree(torch, lambda m, x: m.erfinv(x.detach()), EDGES)


def test_gradient_of_xlogy_is_zero_where_both_are_zero(torch):
    found = []
    for m in (convcore, torch):
        x, y = (m.tensor([0.0, 0.0, 2.0], requires_grad=True) for _ in range(2))
        m.xlogy(x, y + m.tensor([0.0, -1.0, 0.0])).sum().backward()
        found.append(x.grad.tolist())
    assert found[0] == pytest.approx(found[1])


def test_logarithms_of_other_dtypes_are_as_in_pytorch(torch):
    n = np.arange(3)
    agree(torch, lambda m, x: m.xlogy(x, x), n)
    agree(torch, lambda m, x: m.erfinv(x), n[:1])
    agree(torch, lambda m, x, y: m.xlogy(x, y), n, np.array(2, "float32"))
    agree(torch, lambda m, x, y: m.logaddexp(x, y), np.ones(2, "float32"), np.ones(2))
    same_error(torch, lambda m, x: m.logaddexp(x, x), n)
    same_error(torch, lambda m, x: m.logaddexp(x, 1.0), np.ones(2))
    same_error(torch, lambda m, x: m.erfinv(x), np.ones(2, complex))
    same_error(torch, lambda m, x: m.xlogy(x, x), np.ones(2, complex))
    same_error(torch, lambda m, x: x.xlogy_(m.ones(3)), n)
    with pytest.raises(TypeError):
        convcore.xlogy(1, 2)


def test_gradients_are_those_of_finite_differences(rng):
    x, y = (convcore.from_numpy(rng.uniform(0.3, 0.8, (2, 3))).requires_grad_() for _ in range(2))
    for function in (convcore.logaddexp, convcore.xlogy):
        assert gradcheck(function, (x, y))
        assert gradgradcheck(function, (x, y))
    assert gradcheck(convcore.erfinv, (x,))
    assert gradgradcheck(convcore.erfinv, (x,))


def test_erfc_and_logit_agree_with_pytorch(torch, rng):
    x = drawn(rng, (3, 4), "float64", 0.1, 0.9)
    agree(torch, lambda m, x: m.erfc(x * 3), x)
    agree(torch, lambda m, x: x.logit(), x, nodes=1)
    agree(torch, lambda m, x: m.logit(x, 0.3), x)
    agree(torch, lambda m, x: m.logit(x.detach()), EDGES)
    agree(torch, lambda m, x: m.erfc(x.detach()), EDGES)
    leaf = convcore.from_numpy(x).requires_grad_()
    assert gradcheck(convcore.logit, (leaf,))
    assert gradgradcheck(convcore.erfc, (leaf,))
    assert abs(convcore.logit(convcore.tensor(0.75)).item() - np.log(3)) < 1e-6


@pytest.mark.parametrize("eps", [None, 0.0, -0.0, 0.1, 0.6, 1.0])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_logit_at_its_edges_agrees_with_pytorch(torch, eps, dtype):
    found = []
    for lib in (convcore, torch):  # few elements: PyTorch takes -0.0 among many in another way
        x = lib.tensor([0.0, -0.0, 1.0, 0.05, -1.0, 0.7, 2.0], dtype=getattr(lib, dtype))
        y = x.requires_grad_().logit(eps)
        y.backward(lib.ones_like(y))
        found.append((y.detach().double().numpy(), x.grad.double().numpy()))
    for ours, theirs in zip(*found, strict=True):
        close = {"float64": 1e-6, "bfloat16": 1e-2}.get(dtype, 2e-3)
        np.testing.assert_allclose(ours, theirs, rtol=close)


def test_bounds_of_logit_hold_for_nothing_known_of_the_values():
    assert convcore.logit(convcore.zeros(2, 3, device="meta"), 0.1).shape == (2, 3)
