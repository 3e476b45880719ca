"""Variances and standard deviations, with their means, beside PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree, same_error
from elements import SEEDS, drawn
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from reductions import SHAPES, agree_over_all, agree_over_axes, gradients_are_right

import convcore
from convcore.autograd import gradcheck, gradgradcheck

# (name, call with an axis or axes and keepdim, whether it takes several axes, complex numbers)
ALONG = [
    ("var", lambda m, x, dim, k: m.var(x, dim, keepdim=k, correction=0), True, True),
    ("std", lambda m, x, dim, k: m.std(x, dim, False, k), True, True),
]


WHOLE = [
    ("var", lambda m, x: x.var(correction=0), True),
    ("std", lambda m, x: x.std(unbiased=False), True),
]


@pytest.mark.parametrize(
    ("name", "call", "several", "is_complex"), ALONG, ids=[row[0] for row in ALONG]
)
@examples(12)
@given(st.data(), SHAPES, SEEDS, st.booleans())
def test_variance_over_axes_agrees_with_pytorch(
    torch, name, call, several, is_complex, data, shape, seed, keepdim
):
    agree_over_axes(torch, call, several, is_complex, data, shape, seed, keepdim)


@pytest.mark.parametrize(("name", "call", "is_complex"), WHOLE, ids=[row[0] for row in WHOLE])
@examples(8)
@given(st.data(), SHAPES, SEEDS)
def test_variance_of_all_agrees_with_pytorch(torch, name, call, is_complex, data, shape, seed):
    agree_over_all(torch, call, is_complex, data, shape, seed)


@pytest.mark.parametrize("name", ["var", "std"])
@pytest.mark.parametrize("dim", [0, 1])
def test_variance_gradients_are_those_of_finite_differences(rng, name, dim):
    call, _, is_complex = next(row[1:] for row in ALONG if row[0] == name)
    gradients_are_right(call, is_complex, rng, dim)


@pytest.mark.parametrize("correction", [0, 1, 2, 0.5])
def test_corrections_of_var_agree_with_pytorch(torch, rng, correction):
    x = rng.normal(size=(4, 3))
    agree(torch, lambda m, x: x.var(0, correction=correction), x)
    agree(torch, lambda m, x: m.std(x, (0, 1), correction=correction, keepdim=True), x)


def test_older_arguments_of_var_are_understood(torch, rng):
    x = rng.normal(size=(4, 3))
    for call in (
        lambda m, x: x.var(False),
        lambda m, x: x.var(1, True, True),
        lambda m, x: x.std(0, False),
        lambda m, x: x.std(unbiased=True),
    ):
        agree(torch, call, x)


def test_var_without_degrees_of_freedom_warns():
    with pytest.warns(UserWarning, match="degrees of freedom is <= 0"):
        assert convcore.ones(1).var().isnan()


def test_variance_of_integers_is_refused_as_in_pytorch(torch):
    same_error(torch, lambda m: m.tensor([1, 2]).var())


@pytest.mark.parametrize("name", ["var_mean", "std_mean"])
@examples(20)
@given(
    st.sampled_from([(4,), (2, 3), (3, 2, 2)]),
    st.sampled_from([None, 0, -1, (0,), "all"]),
    st.sampled_from([{}, {"correction": 0}, {"unbiased": False}, {"keepdim": True}]),
    st.sampled_from(["float64", "float32", "complex128"]),
    SEEDS,
)
def test_moments_agree_with_pytorch(torch, name, shape, dim, arguments, dtype, seed):
    dim = tuple(range(len(shape))) if dim == "all" else dim
    if "unbiased" in arguments and dim is None:
        arguments = {**arguments, "keepdim": False}
        dim = tuple(range(len(shape)))
    x = drawn(np.random.default_rng(seed), shape, dtype, -2, 2)
    rtol = 1e-3 if dtype == "float32" else 1e-9
    call = lambda m, x: getattr(m, name)(x, dim, **arguments)  # noqa: E731
    agree(torch, call, x, seed=seed, nodes=1, rtol=rtol)
    for place in range(2):
        agree(torch, lambda m, x: call(m, x)[place], x, seed=seed, nodes=1, rtol=rtol)  # noqa: B023


@pytest.mark.parametrize("name", ["var_mean", "std_mean"])
def test_moments_take_the_arguments_of_pytorch(torch, rng, name):
    x = rng.normal(size=(2, 3))
    agree(torch, lambda m, x: getattr(m, name)(x, False), x)
    agree(torch, lambda m, x: getattr(m, name)(x, axis=1, keepdim=True), x)
    same_error(torch, lambda m, x: getattr(m, name)(x), np.arange(3))
    for m in (torch, convcore):
        with pytest.warns(UserWarning, match=rf"{name}\(\): degrees of freedom is <= 0"):
            spread, mean = getattr(m, name)(m.tensor(2.0))
        assert spread.isnan()
        assert mean.item() == 2


@pytest.mark.parametrize("function", [convcore.std_mean, convcore.var_mean])
def test_gradients_of_moments_are_those_of_finite_differences(rng, function):
    x = convcore.from_numpy(rng.uniform(0.3, 0.8, (2, 3))).requires_grad_()
    assert gradcheck(function, (x,))
    assert gradgradcheck(function, (x,))


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("name", ["std", "std_mean"])
def test_squares_beyond_the_dtype(name, dtype):
    x = np.array([1e19, 2e19, -3e19], dtype)
    found = getattr(convcore, name)(convcore.from_numpy(x))
    found = found[0] if isinstance(found, tuple) else found
    assert found.item() == pytest.approx(np.std(x.astype("complex128"), ddof=1))


@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
@pytest.mark.parametrize(
    ("positional", "named"),
    [
        ([True], {"keepdim": True}),
        ([True], {"correction": 1}),
        ([], {"dim": True}),
        ([], {"correction": np.array([1.0])}),
    ],
)
def test_a_bool_says_unbiased_alone_and_a_correction_is_a_number(torch, name, positional, named):
    for lib in (torch, convcore):
        call, x = getattr(lib, name), lib.tensor([[1.0, 2.0, 4.0]])
        call(x, False)
        with pytest.raises(TypeError):
            call(x, *positional, **named)
