"""Rounding, and quotients with their remainders: halves, signs, integers, gradients."""

from __future__ import annotations

import numpy as np
import pytest

import convcore

HALVES = np.array([-2.5, -1.5, -0.5, -0.0, 0.5, 1.5, 2.5, np.inf, -np.inf, np.nan])


def test_halves_go_to_the_even_integer():
    expected = [-2, -2, 0, 0, 0, 2, 2, np.inf, -np.inf, np.nan]
    np.testing.assert_array_equal(convcore.round(convcore.from_numpy(HALVES)).numpy(), expected)


@pytest.mark.parametrize("name", ["ceil", "floor", "trunc", "round", "frac"])
def test_a_number_is_its_rounded_part_and_the_rest(name):
    x = convcore.from_numpy(np.linspace(-3, 3, 49))
    rounded = getattr(convcore, name)(x)
    if name == "frac":
        rounded = x - rounded
    assert (rounded == convcore.trunc(rounded)).all()
    assert ((x - rounded).abs() < 1).all()
    signs = {"ceil": x <= rounded, "floor": x >= rounded}
    assert signs.get(name, x.abs() - rounded.abs() > -1).all()


@pytest.mark.parametrize("name", ["ceil", "floor", "trunc", "round"])
def test_integers_stay_and_are_copied(name):
    x = convcore.tensor([-2, 0, 7])
    rounded = getattr(convcore, name)(x)
    assert rounded.dtype == convcore.int64 and rounded.tolist() == x.tolist()
    rounded[0] = 5
    assert x[0] == -2


@pytest.mark.parametrize("name", ["ceil", "floor", "trunc", "round"])
def test_gradients_are_zero_with_a_history(name):
    x = convcore.tensor([-1.5, 2.25], requires_grad=True)
    y = getattr(convcore, name)(x)
    y.sum().backward()
    assert y.grad_fn.name() == f"{name.title()}Backward0"
    assert x.grad.tolist() == [0, 0]


@pytest.mark.parametrize("a", [-7, 7])
@pytest.mark.parametrize("b", [-3, 3])
def test_remainder_has_the_divisors_sign_and_fmod_the_dividends(a, b):
    assert convcore.remainder(convcore.tensor(a), b).item() == a % b
    assert convcore.fmod(convcore.tensor(a), b).item() == int(np.fmod(a, b))
    assert convcore.floor_divide(convcore.tensor(a), b).item() == a // b


def test_gradient_of_a_remainder_by_the_divisor_is_minus_the_quotient():
    x = convcore.tensor([7.5, -7.5], requires_grad=True)
    y = convcore.tensor([2.0, 2.0], requires_grad=True)
    (x % y).sum().backward()
    assert x.grad.tolist() == [1, 1] and y.grad.tolist() == [-3, 4]


def test_integers_by_zero_are_refused():
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        convcore.remainder(convcore.tensor([1]), convcore.tensor([0]))


def test_reflected_and_in_place_forms_are_the_same_functions():
    x = convcore.tensor([2.0, 4.0])
    assert (7 % x).tolist() == [1, 3] and (9 // x).tolist() == [4, 2]
    x %= 3
    x //= 1
    assert x.tolist() == [2, 1]
    assert convcore.tensor([1.5]).floor_().item() == 1


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc"])
def test_complex_numbers_are_not_rounded(torch, name):
    for m in (convcore, torch):
        with pytest.raises(NotImplementedError, match=f"{name} is not supported for complex"):
            getattr(m, name)(m.tensor([1j]))


@pytest.mark.parametrize("rounding", ["floor", "trunc"])
def test_no_integers_are_divided_by_zero(rounding):
    for x in (convcore.zeros(0, dtype=convcore.int64), convcore.zeros(2, 0, dtype=convcore.uint8)):
        results = x // 0, x % 0, convcore.fmod(x, 0), convcore.div(x, 0, rounding_mode=rounding)
        assert all(found.shape == x.shape and found.dtype == x.dtype for found in results)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        convcore.div(convcore.ones(2, dtype=convcore.int64), 0, rounding_mode=rounding)


@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool", "complex64"])
def test_only_floats_are_rounded_to_places(torch, dtype):
    for lib in (convcore, torch):
        x = lib.tensor([1, 0, 1]).to(getattr(lib, dtype))
        for call in (lambda x: x.round(decimals=-1), lambda x: x.round_(decimals=2)):
            with pytest.raises(NotImplementedError, match="round_cpu"):
                call(x)
    if dtype != "complex64":
        assert convcore.ones(2).to(getattr(convcore, dtype)).round().tolist() == [1, 1]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("decimals", [3, 5, -1, -5])
def test_narrow_floats_are_rounded_to_places_in_float32(torch, dtype, decimals):
    found = [
        lib.tensor([24.98, 120.123, 0.5, 1.5, 60000.0])
        .to(getattr(lib, dtype))
        .round(decimals=decimals)
        for lib in (convcore, torch)
    ]
    assert found[0].tolist() == found[1].tolist()
