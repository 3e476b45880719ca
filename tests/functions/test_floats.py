"""Signs, exponents and divisors beside PyTorch's, and by their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from against_torch import agree, same_error

import convcore
from convcore.autograd import gradcheck, gradgradcheck

EDGES = np.array([-math.inf, -2.5, -0.0, 0.0, 1.0, 3.0, math.inf])


@pytest.mark.parametrize("name", ["signbit", "isposinf", "isneginf", "isreal", "fix"])
def test_functions_of_one_tensor_agree_with_pytorch(torch, name):
    for array in (EDGES, EDGES.astype("float32"), np.arange(-2, 2)):
        agree(torch, lambda m, x: getattr(m, name)(x.detach()), array)


def test_functions_of_two_tensors_agree_with_pytorch(torch, rng):
    x, y = rng.normal(size=(3, 4)), rng.normal(size=(4,))
    agree(torch, lambda m, x, y: m.copysign(x.detach(), y.detach()), x, y)
    agree(torch, lambda m, x: x.detach().copysign(-2), x)
    agree(torch, lambda m, x, y: m.heaviside(x.detach(), y.detach()), EDGES, y[:1])
    agree(torch, lambda m, x, y: m.logaddexp2(x, y), x, y, rtol=1e-9)
    agree(torch, lambda m, x, y: m.nextafter(x.detach(), y.detach()), x, y)
    agree(torch, lambda m, x, n: m.ldexp(x, n), x, np.arange(4))
    agree(torch, lambda m, x: m.float_power(x.abs(), 1.5), x.astype("float32"), rtol=1e-5)
    agree(torch, lambda m, n: m.float_power(2, n), np.arange(3))
    agree(torch, lambda m, x: m.frexp(x)[0], x)
    agree(torch, lambda m, x: tuple(m.frexp(x.detach())), EDGES[1:-1])
    a, b = np.arange(-6, 6), np.array([4, 0, 6] * 4)
    agree(torch, lambda m, a, b: m.gcd(a, b), a, b)
    agree(torch, lambda m, a, b: a.lcm(b), a, b)
    agree(torch, lambda m, a, b: a.gcd_(b), a, b)


def test_errors_are_pytorchs(torch):
    same_error(torch, lambda m, x: m.signbit(x), np.ones(1, complex))
    same_error(torch, lambda m, x: m.isposinf(x), np.ones(1, complex))
    same_error(torch, lambda m, x: m.gcd(x, x), np.ones(2))
    same_error(torch, lambda m, x: m.frexp(x), np.arange(2))
    same_error(torch, lambda m, x, y: m.heaviside(x, y), np.ones(1), np.arange(1))


def test_a_mantissa_and_an_exponent_make_the_number():
    mantissa, exponent = convcore.frexp(convcore.tensor([0.0, 6.0, -0.3]))
    assert mantissa.abs().tolist()[:2] == [0, 0.75]
    assert exponent.dtype is convcore.int32
    assert convcore.ldexp(mantissa, exponent).allclose(convcore.tensor([0.0, 6.0, -0.3]))


def test_nothing_is_lazily_conjugated():
    z = convcore.tensor([1 + 2j])
    assert not z.conj().is_conj()
    assert not z.is_neg()
    assert z.resolve_conj() is z is z.resolve_neg()
    assert z.conj_physical().tolist() == [1 - 2j]
    assert z.is_same_size(convcore.zeros(1))


def test_gradients_are_those_of_finite_differences(rng):
    x, y = (convcore.from_numpy(rng.normal(size=(4,))).requires_grad_() for _ in range(2))
    for function in (convcore.logaddexp2, convcore.copysign, convcore.ldexp):
        assert gradcheck(function, (x, y))
    assert gradgradcheck(convcore.logaddexp2, (x, y))
    assert gradcheck(lambda x: convcore.frexp(x)[0], (x,))


def test_nextafter_promotes(torch):
    for lib in (torch, convcore):
        found = lib.nextafter(lib.tensor(1), lib.tensor([2.0]))
        assert found.dtype == lib.float32
        assert found.item() == np.nextafter(np.float32(1), np.float32(2))


def test_heaviside_of_nan_is_pytorchs(torch):
    same = np.array([np.nan, -1.0, 0.0, 2.0])
    agree(torch, lambda m, x, y: m.heaviside(x.detach(), y.detach()), same, np.full(4, 7.0))


@pytest.mark.parametrize("exponent", ["int64", "float32", "float64"])
def test_ldexp_of_a_power_that_is_no_float_alone(exponent):
    x = np.array([1e-40, 1e30, 0.0, np.inf], "f4")
    exponents = np.array([140, -140, 200, 3])
    given = convcore.from_numpy(exponents.astype(exponent))
    y = convcore.ldexp(convcore.from_numpy(x), given)
    np.testing.assert_array_equal(y.numpy(), np.ldexp(x, exponents))
    wide, far = np.array([1.0, 1e-300, 1e300]), np.array([500, 900, -900])
    given = convcore.from_numpy(far.astype(exponent))
    y = convcore.ldexp(convcore.from_numpy(wide), given)
    np.testing.assert_array_equal(y.numpy(), np.ldexp(wide, far))


def test_ldexp_of_infinite_exponents():
    x, exponents = convcore.tensor([1.0, 1.0, -2.0]), convcore.tensor([np.inf, -np.inf, np.inf])
    assert convcore.ldexp(x, exponents).tolist() == [np.inf, 0, -np.inf]
    assert convcore.ldexp(x.double(), exponents.double()).tolist() == [np.inf, 0, -np.inf]


def test_the_gradient_of_copysign_is_nan_where_the_size_is_no_number_as_in_pytorch(torch):
    sizes = [math.nan, math.inf, -math.inf, 0.0, -0.0, 2.0, -2.0]
    for sign in (1.0, -1.0, math.nan):
        ours, theirs = (m.tensor(sizes, requires_grad=True) for m in (convcore, torch))
        for m, x in ((convcore, ours), (torch, theirs)):
            m.copysign(x, sign).sum().backward()
        np.testing.assert_array_equal(ours.grad.numpy(), theirs.grad.numpy())
