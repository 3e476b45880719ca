"""Sums, differences, products and quotients, beside PyTorch's: values, gradients, node names."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from against_torch import agree
from call_tests import errors_agree
from elements import COMPLEX, INTEGER, REAL, SEEDS, SHAPES, TOLERANCE, broadcast_pair, drawn
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

import convcore
from convcore.autograd import gradcheck, gradgradcheck

# (name, call on two tensors, lowest and highest element)
TWO = [
    ("+", lambda m, x, y: x + y, -2, 2),
    ("-", lambda m, x, y: x - y, -2, 2),
    ("*", lambda m, x, y: x * y, -2, 2),
    ("/", lambda m, x, y: x / y, 0.3, 2),
    ("add", lambda m, x, y: m.add(x, y, alpha=2), -2, 2),
    ("sub", lambda m, x, y: m.sub(x, y, alpha=3), -2, 2),
    ("rsub", lambda m, x, y: m.rsub(x, y), -2, 2),
    ("div", lambda m, x, y: x.true_divide(y), 0.3, 2),
]
# With float16, complex numbers are of a dtype that only PyTorch has.
TYPES = ["float32", "float64", *COMPLEX]
ONE = [
    ("x + 2", lambda m, x: x + 2),
    ("2 + x", lambda m, x: 2 + x),
    ("x - 2.5", lambda m, x: x - 2.5),
    ("2.5 - x", lambda m, x: 2.5 - x),
    ("x * 3", lambda m, x: x * 3),
    ("3 * x", lambda m, x: 3 * x),
    ("x / 4", lambda m, x: x / 4),
    ("4 / x", lambda m, x: 4 / x),
    ("-x", lambda m, x: -x),
    ("add with alpha", lambda m, x: m.add(x, 2, alpha=1.5)),
    ("sub with alpha", lambda m, x: x.sub(2, alpha=1.5)),
    ("rsub with alpha", lambda m, x: m.rsub(x, 2, alpha=1.5)),
    ("x * True", lambda m, x: x * True),
    ("itself twice", lambda m, x: x * x + x / x - x),
]


@pytest.mark.parametrize(("name", "call", "low", "high"), TWO, ids=[row[0] for row in TWO])
@examples(15)
@given(st.sampled_from(REAL + COMPLEX), SHAPES, SEEDS)
def test_operation_of_two_tensors_agrees_with_pytorch(
    torch, name, call, low, high, dtype, shape, seed
):
    x, y = broadcast_pair(np.random.default_rng(seed), shape, dtype, low, high)
    agree(torch, call, x, y, seed=seed, nodes=1, rtol=TOLERANCE[dtype])


@pytest.mark.parametrize(("name", "call", "low", "high"), TWO, ids=[row[0] for row in TWO])
@examples(10)
@given(st.sampled_from(TYPES), st.sampled_from(TYPES), SEEDS)
def test_operands_of_two_dtypes_get_gradients_in_their_own(
    torch, name, call, low, high, first, second, seed
):
    rng = np.random.default_rng(seed)
    x = drawn(rng, (3, 2), first, low, high)
    y = drawn(rng, (2,) if seed % 2 else (), second, low, high)
    rtol = max(TOLERANCE[first], TOLERANCE[second])
    agree(torch, call, x, y, seed=seed, nodes=1, rtol=rtol)


@pytest.mark.parametrize(("name", "call"), ONE, ids=[row[0] for row in ONE])
@examples(8)
@given(st.sampled_from(REAL + COMPLEX), SHAPES, SEEDS)
def test_operation_with_a_number_agrees_with_pytorch(torch, name, call, dtype, shape, seed):
    x = drawn(np.random.default_rng(seed), shape, dtype, 0.3, 2)
    agree(torch, call, x, seed=seed, nodes=1, rtol=TOLERANCE[dtype])


@pytest.mark.parametrize(("name", "call", "low", "high"), TWO, ids=[row[0] for row in TWO])
def test_gradients_are_those_of_finite_differences(rng, name, call, low, high):
    for dtype in ("float64", "complex128"):
        arrays = broadcast_pair(rng, (3, 2), dtype, low, high)
        tensors = tuple(convcore.from_numpy(a).requires_grad_() for a in arrays)
        assert gradcheck(lambda x, y: call(convcore, x, y), tensors)
        assert gradgradcheck(lambda x, y: call(convcore, x, y), tensors)


def test_complex_number_makes_a_real_tensor_complex(torch, rng):
    for dtype in REAL[1:]:
        x = rng.uniform(0.5, 2, 3).astype(dtype)
        for call in (
            lambda m, x: x * (1 + 2j),
            lambda m, x: x + 1j,
            lambda m, x: 2j - x,
            lambda m, x: x / (1 + 1j),
            lambda m, x: 1j / x,
        ):
            agree(torch, call, x, rtol=1e-5)


INTEGER_CALLS = {
    "+": lambda m, x: x + 3,
    "-": lambda m, x: x - 3,
    "*": lambda m, x: x * 3,
    "/": lambda m, x: x / 3,
    "3 /": lambda m, x: 3 / x,
    "* 2.5": lambda m, x: x * 2.5,
    "wrapped": lambda m, x: x + 300,
    "-x": lambda m, x: -x,
    "floor": lambda m, x: m.div(x, 3, rounding_mode="floor"),
    "trunc": lambda m, x: m.div(x, -3, rounding_mode="trunc"),
    "add bools": lambda m, x: x + (x > 1),
}


@pytest.mark.parametrize("name", INTEGER_CALLS)
@pytest.mark.parametrize("dtype", INTEGER)
def test_integers_agree_with_pytorch(torch, name, dtype):
    if name == "trunc" and dtype == "uint8":
        pytest.skip("-3 is no byte")
    agree(torch, INTEGER_CALLS[name], np.array([0, 1, 5, 100], dtype), rtol=1e-6)


def test_bools_agree_with_pytorch(torch):
    x = np.array([True, False])
    for call in (
        lambda m, x: x + x,
        lambda m, x: x * x,
        lambda m, x: x + 1,
        lambda m, x: x * 2.5,
        lambda m, x: x / 2,
        lambda m, x: x / x,
        lambda m, x: x + True,
    ):
        agree(torch, call, x)


@pytest.mark.parametrize("mode", ["floor", "trunc", None])
def test_rounded_quotients_agree_with_pytorch(torch, rng, mode):
    x, y = rng.normal(size=20) * 5, rng.normal(size=20)
    agree(torch, lambda m, x, y: m.div(x.detach(), y, rounding_mode=mode).detach(), x, y)
    i, j = rng.integers(-9, 9, 20), rng.integers(1, 4, 20) * rng.choice([-1, 1], 20)
    agree(torch, lambda m, i, j: m.div(i, j, rounding_mode=mode), i, j, rtol=1e-6)


def test_numbers_too_large_for_a_dtype_become_infinite(torch):
    agree(torch, lambda m, x: x.detach() + 1e300, np.ones(2, np.float32))
    agree(torch, lambda m, x: x.detach() * 1e6, np.ones(2, np.float16))


def test_division_by_zero_is_infinite_without_a_warning():
    x = convcore.tensor([1.0, -1.0, 0.0], requires_grad=True)
    y = x / 0
    assert y.tolist()[:2] == [np.inf, -np.inf]
    assert y[2].isnan()
    (1 / x).sum().backward()
    assert x.grad.tolist() == [-1, -1, -np.inf]


@pytest.mark.parametrize("method", ["add_", "sub_", "mul_", "div_", "neg_"])
@pytest.mark.parametrize("other", ["tensor", "number"])
def test_in_place_agrees_with_pytorch(torch, rng, method, other):
    x, y = rng.normal(size=(2, 3)), rng.uniform(1, 2, 3)

    def function(m, x, y):
        z = x * 1
        operands = () if method == "neg_" else (y,) if other == "tensor" else (2.5,)
        assert getattr(z, method)(*operands) is z
        assert z._version == 1
        return z * 2

    agree(torch, function, x, y)


@pytest.mark.parametrize("op", ["iadd", "isub", "imul", "itruediv"])
def test_in_place_operators_agree_with_pytorch(torch, rng, op):
    def function(m, x, y):
        z = x * 1
        assert getattr(operator, op)(z, y) is z
        return z

    agree(torch, function, rng.normal(size=(2, 3)), rng.uniform(1, 2, 3))


@pytest.mark.parametrize("method", ["add_", "sub_", "mul_", "div_"])
def test_in_place_without_graph_keeps_the_memory(method):
    x = convcore.full((2, 3), 8.0)
    view, address = x[0], x.data_ptr()
    with convcore.no_grad():
        getattr(x, method)(convcore.full((3,), 2.0))
    assert x.data_ptr() == address
    assert convcore.equal(view, x[0])
    assert x._version == view._version == 1


def test_results_and_gradients_keep_channels_last(rng):
    array = np.ascontiguousarray(rng.uniform(1, 2, (2, 4, 5, 3))).transpose(0, 3, 1, 2)
    x = convcore.from_numpy(array).requires_grad_()
    y = convcore.from_numpy(array).requires_grad_()
    for name, call, *_ in TWO:
        out = call(convcore, x, y)
        grads = convcore.autograd.grad(out, (x, y), convcore.from_numpy(array))
        assert out.stride() == x.stride(), name
        assert all(grad.stride() == x.stride() for grad in grads), name
    for name, call in ONE:
        assert call(convcore, x).stride() == x.stride(), name


def test_arrays_and_numpys_numbers_are_operands():
    x = convcore.ones(2)
    assert (x + np.float64(1)).dtype is convcore.float32
    assert (np.float32(3) * x).tolist() == [3, 3]
    assert (x * np.array([2.0, 3.0])).tolist() == [2, 3]
    assert isinstance(np.array([2.0, 3.0]) * x, convcore.Tensor)


def test_pytorchs_older_arguments_are_understood():
    x = convcore.ones(2)
    assert convcore.add(x, 3, x).tolist() == [4, 4]
    assert x.add_(2, convcore.ones(2)).tolist() == [3, 3]


ERRORS = {
    "shapes": lambda m: m.ones(2, 3) + m.ones(4),
    "more shapes": lambda m: m.ones(2, 3) * m.ones(3, 3),
    "two bools": lambda m: m.tensor([True]) - m.tensor([True]),
    "bools": lambda m: 1 - m.tensor([True]),
    "minus bools": lambda m: -m.tensor([True]),
    "text": lambda m: m.ones(2) + "a",
    "nothing": lambda m: m.ones(2) * None,
    "floats into integers": lambda m: m.tensor([1]).add_(1.5),
    "quotient of integers in place": lambda m: m.tensor([1]).div_(2),
    "broadcast in place": lambda m: m.ones(1).mul_(m.ones(3)),
    "integers by 0": lambda m: m.tensor([1]).div(0, rounding_mode="trunc"),
    "rounding": lambda m: m.ones(1).div(2, rounding_mode="up"),
    "alpha": lambda m: m.tensor([1]).add(1, alpha=1.5),
}
test_errors_are_pytorchs = errors_agree(ERRORS)


def test_two_numbers_are_tensors_without_axes(torch):
    for function in (
        lambda lib: lib.add(True, True),
        lambda lib: lib.add(1, 2.5),
        lambda lib: lib.mul(2, 3),
    ):
        ours, theirs = function(convcore), function(torch)
        assert ours.item() == theirs.item() and str(ours.dtype) == str(theirs.dtype)
