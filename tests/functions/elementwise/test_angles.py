"""Inverse hyperbolic functions and angles, beside PyTorch's and by their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from against_torch import agree, same_error

import convcore
from convcore.autograd import gradcheck, gradgradcheck

UNARY = ("asinh", "acosh", "atanh", "arcsinh", "arccosh", "arctanh", "sinc", "deg2rad", "rad2deg")


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_tensor_agree_with_pytorch(torch, rng, name):
    start = 1.1 if "cosh" in name else -0.9
    x = rng.uniform(start, start + 1.7, (2, 3))
    for array in (x, x.astype("float32"), np.arange(3)):
        agree(torch, lambda m, x: getattr(m, name)(x), array, rtol=1e-5)
    agree(torch, lambda m, x: getattr(x.detach().clone(), f"{name}_")(), x, rtol=1e-9)


def test_complex_numbers_agree_with_pytorch(torch, rng):
    z = rng.normal(size=(5,)) + 1j * rng.normal(size=(5,))
    for name in ("asinh", "acosh", "atanh", "sinc", "angle"):
        agree(torch, lambda m, z, name=name: getattr(m, name)(z), z, rtol=1e-9)


def test_angles_of_real_numbers_agree_with_pytorch(torch):
    agree(torch, lambda m, x: m.angle(x), np.array([-2.0, -0.0, 0.0, 3.0, math.nan]))
    agree(torch, lambda m, x: x.angle(), np.arange(-2, 2))
    agree(torch, lambda m, x, y: m.hypot(x, y), np.array([3.0, 1e200]), np.array([4.0, 1e200]))
    same_error(torch, lambda m, x: m.deg2rad(x), np.ones(1, complex))


def test_values_are_those_of_the_definitions():
    x = convcore.tensor([0.0, 0.5, 1.0], dtype=convcore.float64)
    assert convcore.asinh(x.sinh()).allclose(x)
    assert convcore.atanh(x[:2].tanh()).allclose(x[:2])
    assert convcore.sinc(x).tolist() == pytest.approx([1, 2 / math.pi, 0])
    assert convcore.hypot(convcore.tensor(3.0), convcore.tensor(4.0)).item() == 5
    assert convcore.angle(convcore.tensor(-1.0)).item() == pytest.approx(math.pi)


def test_gradients_are_those_of_finite_differences(rng):
    x, y = (convcore.from_numpy(rng.uniform(0.3, 0.8, (4,))).requires_grad_() for _ in range(2))
    for function in (convcore.asinh, convcore.atanh, convcore.sinc):
        assert gradcheck(function, (x,))
        assert gradgradcheck(function, (x,))
    assert gradcheck(convcore.hypot, (x, y))
    assert gradcheck(lambda x: convcore.acosh(x + 1), (x,))
    assert gradcheck(lambda x, y: convcore.angle(convcore.complex(x, y)), (x, y))
    zero = convcore.zeros(1, requires_grad=True)
    convcore.sinc(zero).sum().backward()
    assert zero.grad.tolist() == [0]


@pytest.mark.parametrize(("dtype", "accuracy"), [("float32", 1e-6), ("float64", 1e-14)])
def test_no_derivative_of_sinc_cancels_near_zero(dtype, accuracy):
    points = [0.0, 1e-30, 1e-9, 1e-5, 1e-3, -1e-3]
    x = convcore.tensor(points, dtype=getattr(convcore, dtype), requires_grad=True)
    # sinc(x) = 1 - (pi x)^2 / 6 + (pi x)^4 / 120 - ...
    series = [-(math.pi**2) / 3, math.pi**4 / 30]
    first = [series[0] * p + series[1] * p**3 for p in points]
    second = [series[0] + 3 * series[1] * p**2 for p in points]
    third = [6 * series[1] * p for p in points]
    value = convcore.sinc(x)
    for expected, rest in zip((first, second, third), (1e-12, 1e-10, 1e-4), strict=True):
        (value,) = convcore.autograd.grad(value.sum(), x, create_graph=True)
        assert value.tolist() == pytest.approx(expected, rel=accuracy + rest, abs=1e-32)


def test_sinc_of_float16_is_computed_in_float32():
    x = convcore.linspace(-8, 8, 101).half()
    assert x.sinc().equal(x.float().sinc().half())
