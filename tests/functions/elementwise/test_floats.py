"""Signs and neighbours beside PyTorch's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from against_torch import agree, same_error

import convcore
from convcore.autograd import gradcheck

EDGES = np.array([-math.inf, -2.5, -0.0, 0.0, 1.0, 3.0, math.inf])


@pytest.mark.parametrize("name", ["signbit", "fix"])
def test_functions_of_one_tensor_agree_with_pytorch(torch, name):
    for array in (EDGES, EDGES.astype("float32"), np.arange(-2, 2)):
        agree(torch, lambda m, x: getattr(m, name)(x.detach()), array)


def test_functions_of_two_tensors_agree_with_pytorch(torch, rng):
    x, y = rng.normal(size=(3, 4)), rng.normal(size=(4,))
    agree(torch, lambda m, x, y: m.copysign(x.detach(), y.detach()), x, y)
    agree(torch, lambda m, x: x.detach().copysign(-2), x)
    agree(torch, lambda m, x, y: m.nextafter(x.detach(), y.detach()), x, y)


def test_errors_are_pytorchs(torch):
    same_error(torch, lambda m, x: m.signbit(x), np.ones(1, complex))


def test_nothing_is_lazily_conjugated():
    z = convcore.tensor([1 + 2j])
    assert z.resolve_conj() is z is z.resolve_neg()


def test_gradients_are_those_of_finite_differences(rng):
    x, y = (convcore.from_numpy(rng.normal(size=(4,))).requires_grad_() for _ in range(2))
    assert gradcheck(convcore.copysign, (x, y))


def test_nextafter_promotes(torch):
    for lib in (torch, convcore):
        found = lib.nextafter(lib.tensor(1), lib.tensor([2.0]))
        assert found.dtype == lib.float32
        assert found.item() == np.nextafter(np.float32(1), np.float32(2))


def test_the_gradient_of_copysign_is_nan_where_the_size_is_no_number_as_in_pytorch(torch):
    sizes = [math.nan, math.inf, -math.inf, 0.0, -0.0, 2.0, -2.0]
    for sign in (1.0, -1.0, math.nan):
        ours, theirs = (m.tensor(sizes, requires_grad=True) for m in (convcore, torch))
        for m, x in ((convcore, ours), (torch, theirs)):
            m.copysign(x, sign).sum().backward()
        np.testing.assert_array_equal(ours.grad.numpy(), theirs.grad.numpy())
