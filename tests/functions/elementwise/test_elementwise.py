"""Functions of each element on its own, beside PyTorch's: values and gradients."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree
from call_tests import (
    dtypes_agree,
    errors_agree,
    in_place_agrees,
    in_place_keeps_memory,
    pairs_agree,
    pairs_have_gradients,
    pairs_keep_channels_last,
    special_pairs_agree,
)
from edges import SPECIAL, agree_at_first_order
from elements import COMPLEX, INTEGER, REAL, SEEDS, SHAPES, TOLERANCE, drawn
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

import convcore
from convcore.autograd import gradcheck, gradgradcheck

# (name, lowest and highest element, whether PyTorch has it for complex numbers)
UNARY = [
    ("abs", -3, 3, True),
    ("acos", -0.9, 0.9, True),
    ("asin", -0.9, 0.9, True),
    ("atan", -0.9, 3, True),
    ("ceil", -3, 3, False),
    ("cos", -3, 3, True),
    ("cosh", -3, 3, True),
    ("erf", -3, 3, False),
    ("exp", -3, 3, True),
    ("exp2", -3, 3, True),
    ("expm1", -3, 3, True),
    ("floor", -3, 3, False),
    ("frac", -3, 3, False),
    ("isfinite", -3, 3, True),
    ("isinf", -3, 3, True),
    ("isnan", -3, 3, True),
    ("log", 0.3, 3, True),
    ("log10", 0.3, 3, True),
    ("log1p", -0.5, 3, True),
    ("log2", 0.3, 3, True),
    ("nan_to_num", -3, 3, False),
    ("reciprocal", 0.3, 3, True),
    ("round", -3, 3, False),
    ("rsqrt", 0.3, 3, True),
    ("sgn", -3, 3, True),
    ("sigmoid", -3, 3, True),
    ("sign", -3, 3, False),
    ("sin", -3, 3, True),
    ("sinh", -3, 3, True),
    ("sqrt", 0.3, 3, True),
    ("square", -3, 3, True),
    ("tan", -1, 1, True),
    ("tanh", -3, 3, True),
    ("trunc", -3, 3, False),
]
WITHOUT_IN_PLACE = ("isfinite", "isinf", "isnan")

# Functions of two tensors, and of a tensor and a number: (name, call, lowest, highest, complex)
BINARY = [
    ("atan2", lambda m, x, y: m.atan2(x, y), 0.3, 3, False),
    ("fmod", lambda m, x, y: m.fmod(x, y), 0.3, 3, False),
    ("pow", lambda m, x, y: x**y, 0.3, 2, True),
    ("remainder", lambda m, x, y: x % y, 0.3, 3, False),
    ("floor_divide", lambda m, x, y: (x // y).detach(), 0.3, 3, False),
    ("square by **", lambda m, x, y: x**2 * y, -3, 3, True),
    ("cube", lambda m, x, y: x**3 * y, -3, 3, True),
    ("inverse square", lambda m, x, y: x**-2 * y, 0.3, 3, True),
    ("root by **", lambda m, x, y: x**0.5 * y, 0.3, 3, True),
    ("power", lambda m, x, y: m.pow(x, 2.5) * y, 0.3, 3, True),
    ("power 0", lambda m, x, y: m.pow(x, 0) * y, -3, 3, True),
    ("power 1", lambda m, x, y: m.pow(x, 1) * y, -3, 3, True),
    ("number to a power", lambda m, x, y: 2**x * y, -3, 3, True),
    ("fmod number", lambda m, x, y: m.fmod(x, 0.7) * y, -3, 3, False),
    ("remainder number", lambda m, x, y: x % 0.7 * y, -3, 3, False),
    ("round decimals", lambda m, x, y: m.round(x, decimals=1) * y, -3, 3, False),
]


@pytest.mark.parametrize(("name", "low", "high", "is_complex"), UNARY, ids=[u[0] for u in UNARY])
@examples(6)
@given(st.data(), SHAPES, SEEDS)
def test_unary_agrees_with_pytorch(torch, name, low, high, is_complex, data, shape, seed):
    dtype = data.draw(st.sampled_from(REAL + COMPLEX * is_complex))
    x = drawn(np.random.default_rng(seed), shape, dtype, low, high)
    agree(torch, lambda m, x: getattr(m, name)(x), x, seed=seed, nodes=1, rtol=TOLERANCE[dtype])


test_binary_agrees_with_pytorch = pairs_agree(BINARY)
test_binary_gradients_are_those_of_finite_differences = pairs_have_gradients(BINARY)
test_binary_functions_keep_channels_last = pairs_keep_channels_last(BINARY)


SMOOTH = [u for u in UNARY if u[0] not in WITHOUT_IN_PLACE]


@pytest.mark.parametrize(("name", "low", "high", "is_complex"), SMOOTH, ids=[u[0] for u in SMOOTH])
def test_unary_gradients_are_those_of_finite_differences(rng, name, low, high, is_complex):
    function = getattr(convcore, name)
    for dtype in ["float64"] + ["complex128"] * is_complex:
        x = convcore.from_numpy(drawn(rng, (2, 2), dtype, low, high)).requires_grad_()
        assert gradcheck(function, (x,))
        if name not in ("ceil", "floor", "round", "sign", "trunc"):  # whose gradient is constant
            assert gradgradcheck(function, (x,))


@pytest.mark.parametrize("name", [u[0] for u in UNARY])
def test_unary_agrees_with_pytorch_at_special_values(torch, name):
    x = np.array(SPECIAL, np.float64)
    # Of second derivatives at a pole, PyTorch's formulas give one of NaN, 0 and inf.
    agree_at_first_order(torch, lambda m, x: getattr(m, name)(x), x)


PAIRS_AT_EDGES = {
    "pow": lambda m, x, y: x**y,
    "number pow": lambda m, x, y: 0**x * 1**y,
    **{f"pow {n}": lambda m, x, y, n=n: x**n for n in (0, -1.0, 2, 3, 0.5, -0.5, -2)},
    "negative pow": lambda m, x, y: (-2) ** x,
    "%": lambda m, x, y: x % y,
    "fmod": lambda m, x, y: m.fmod(x, y),
    "//": lambda m, x, y: (x // y).detach(),
    "atan2": lambda m, x, y: m.atan2(x, y),
}
test_binary_agrees_with_pytorch_at_ties_and_special_values = special_pairs_agree(PAIRS_AT_EDGES)


IN_PLACE = {
    **{
        f"{name}_": lambda m, x, name=name: getattr(x, f"{name}_")()
        for name, *_ in UNARY
        if name not in WITHOUT_IN_PLACE
    },
    "pow_": lambda m, x: x.pow_(2),
    "**=": lambda m, x: x.__ipow__(3),
    "%=": lambda m, x: x.__imod__(0.4),
    "fmod_": lambda m, x: x.fmod_(0.4),
    "remainder_": lambda m, x: x.remainder_(0.4),
}
test_in_place_agrees_with_pytorch = in_place_agrees(IN_PLACE)
test_in_place_without_graph_keeps_the_memory = in_place_keeps_memory(IN_PLACE)


def test_elementwise_functions_keep_channels_last(rng):
    array = np.ascontiguousarray(rng.uniform(0.3, 0.9, (2, 4, 5, 3))).transpose(0, 3, 1, 2)
    x = convcore.from_numpy(array).requires_grad_()
    for name, *_ in UNARY:
        out = getattr(convcore, name)(x)
        assert out.stride() == x.stride(), name
        if out.requires_grad and out.grad_fn is not None:
            weight = convcore.from_numpy(rng.normal(size=(2, 4, 5, 3)).transpose(0, 3, 1, 2))
            (grad,) = convcore.autograd.grad(out, x, weight)
            assert grad.stride() == x.stride(), name


INTEGER_CALLS = [
    *("abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "exp", "exp2", "expm1"),
    *("floor", "isfinite", "isinf", "isnan", "log", "log10", "log1p", "log2", "nan_to_num"),
    *("reciprocal", "rsqrt", "sgn", "sigmoid", "sign", "sin", "sinh", "sqrt", "square", "tan"),
    *("tanh", "trunc", "round"),
]


@pytest.mark.parametrize("name", INTEGER_CALLS)
@pytest.mark.parametrize("dtype", [*INTEGER, "bool"])
def test_unary_of_integers_agrees_with_pytorch(torch, name, dtype):
    x = np.array([[0, 1, 2], [3, 1, 0]], dtype)
    try:
        getattr(torch, name)(torch.from_numpy(x))
    except (RuntimeError, TypeError) as error:
        pytest.skip(f"PyTorch has none: {error}")
    agree(torch, lambda m, x: getattr(m, name)(x), x, rtol=1e-5)


MIXED = {
    "add": lambda m, x, y: x + y,
    "sub": lambda m, x, y: x - y,
    "mul": lambda m, x, y: x * y,
    "div": lambda m, x, y: x / y,
    "floor_divide": lambda m, x, y: x // y,
    "remainder": lambda m, x, y: x % y,
    "pow": lambda m, x, y: x**y,
    "fmod": lambda m, x, y: m.fmod(x, y),
    "atan2": lambda m, x, y: m.atan2(x, m.as_tensor(y)),
}
test_operands_of_any_dtype_are_promoted_as_in_pytorch = dtypes_agree(MIXED)


ERRORS = {
    "abs of bools": lambda m: m.ones(2, dtype=m.bool).abs(),
    "sign of complex": lambda m: m.ones(2, dtype=m.complex64).sign(),
    "integers to -1": lambda m: m.tensor([1, 2]) ** -1,
    "integers by 0": lambda m: m.tensor([1, 2]) % 0,
    "integers // 0": lambda m: m.tensor([1, 2]) // 0,
    "integers made floats in place": lambda m: m.tensor([1]).exp_(),
    "shape in place": lambda m: m.ones(1).pow_(m.ones(3)),
    "power of text": lambda m: m.ones(1) ** "a",
    "exp of a number": lambda m: m.exp(2.0),
    "floor of a list": lambda m: m.floor([2.5]),
    "atan2 with a number": lambda m: m.atan2(m.ones(1), 2.0),
}
test_errors_are_pytorchs = errors_agree(ERRORS)


def test_gradient_of_a_complex_exponent_of_a_negative_number(torch):
    found = []
    for lib in (convcore, torch):
        n = lib.tensor([1 + 1j], dtype=lib.complex128, requires_grad=True)
        lib.pow(lib.tensor([-2.0], dtype=lib.float64), n).abs().sum().backward()
        found.append(n.grad.numpy())
    np.testing.assert_allclose(*found)


@pytest.mark.parametrize("power", [0.5, 2.0, 3.0, 1.5])
def test_integers_to_a_power_that_is_a_float_are_of_the_default_dtype(power):
    x = convcore.arange(4)
    for out in (x**power, convcore.pow(x, power), x.to(convcore.uint8) ** power):
        assert out.dtype is convcore.float32
        np.testing.assert_allclose(out.numpy(), np.arange(4.0) ** power, rtol=1e-6)
    assert (x**2).dtype is convcore.int64


def test_powers_of_integers_agree_with_pytorch(torch):
    for power in (0.5, 2.0, 3.0, 2, 3):
        agree(torch, lambda m, x, n=power: x**n, np.arange(5))


def test_gradients_of_powers_of_zero_pass_on_no_nan():
    """Where 0 ** x is flat, its slope is 0 for what was computed from it, too."""
    for base in (0, convcore.zeros(()), convcore.zeros((), requires_grad=True)):
        divisor = convcore.ones(2, requires_grad=True)
        exponent = convcore.tensor(1.5, requires_grad=True)
        quotient = base**exponent / divisor
        inputs = divisor, exponent
        grads = convcore.autograd.grad(quotient.sum(), inputs, create_graph=True)
        again = convcore.autograd.grad([grad.sum() for grad in grads], inputs)
        assert [one.tolist() for one in (*grads, *again)] == [[0, 0], 0, [0, 0], 0]
