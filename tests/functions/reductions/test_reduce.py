"""Sums, means, products, norms and counts, beside PyTorch's: values and gradients."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree, differentiated, same, same_error
from call_tests import errors_agree
from elements import INTEGER, SEEDS, drawn
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from reductions import SHAPES, TIES, agree_over_all, agree_over_axes, gradients_are_right

import convcore
from convcore.autograd import gradcheck, gradgradcheck

# (name, call with an axis or axes and keepdim, whether it takes several axes, complex numbers)
ALONG = [
    ("sum", lambda m, x, dim, k: m.sum(x, dim, k), True, True),
    ("mean", lambda m, x, dim, k: m.mean(x, dim, k), True, True),
    ("prod", lambda m, x, dim, k: m.prod(x, dim, k), False, True),
    ("norm", lambda m, x, dim, k: m.norm(x, 2, dim, k), True, True),
    ("norm 1", lambda m, x, dim, k: x.norm(1, dim, k), True, True),
    ("norm inf", lambda m, x, dim, k: x.norm(float("inf"), dim, k), True, False),
    ("norm -inf", lambda m, x, dim, k: x.norm(-float("inf"), dim, k), True, False),
    ("norm 0", lambda m, x, dim, k: x.norm(0, dim, k), True, False),
    ("norm 3", lambda m, x, dim, k: x.norm(3, dim, k), True, True),
    ("norm 1.5", lambda m, x, dim, k: x.norm(1.5, dim, k), True, True),
    ("norm .5", lambda m, x, dim, k: x.norm(0.5, dim, k), True, False),
    ("logsumexp", lambda m, x, dim, k: m.logsumexp(x, dim, k), True, False),
    ("any", lambda m, x, dim, k: m.any(x > 0, dim, k), True, False),
    ("all", lambda m, x, dim, k: m.all(x > 0, dim, k), True, False),
    ("count_nonzero", lambda m, x, dim, k: m.count_nonzero(x.detach() > 0, dim), True, False),
    ("cumsum", lambda m, x, dim, k: m.cumsum(x, dim), False, True),
    ("cumprod", lambda m, x, dim, k: m.cumprod(x, dim), False, True),
]

WHOLE = [
    ("sum", lambda m, x: x.sum(), True),
    ("mean", lambda m, x: x.mean(), True),
    ("prod", lambda m, x: x.prod(), True),
    ("norm", lambda m, x: x.norm(), True),
    ("norm 1", lambda m, x: x.norm(p=1), True),
    ("any", lambda m, x: (x > 0).any(), False),
    ("all", lambda m, x: m.all(x > 0), False),
    ("count_nonzero", lambda m, x: x.detach().count_nonzero(), False),
]

# PyTorch rounds each step of their gradients to float16: the second ones are off by up to 0.43 of
# what they are, and beside it nothing is to be seen.  What is right is tested on its own.
PRODUCTS = {
    "prod": lambda m, x: m.prod(x, -1),
    "prod of all": lambda m, x: x.prod(),
    "cumprod": lambda m, x: m.cumprod(x, -1),
}


@pytest.mark.parametrize(
    ("name", "call", "several", "is_complex"), ALONG, ids=[row[0] for row in ALONG]
)
@examples(12)
@given(st.data(), SHAPES, SEEDS, st.booleans())
def test_reduction_over_axes_agrees_with_pytorch(
    torch, name, call, several, is_complex, data, shape, seed, keepdim
):
    has_float16 = name not in PRODUCTS
    agree_over_axes(torch, call, several, is_complex, data, shape, seed, keepdim, has_float16)


@pytest.mark.parametrize(("name", "call", "is_complex"), WHOLE, ids=[row[0] for row in WHOLE])
@examples(8)
@given(st.data(), SHAPES, SEEDS)
def test_reduction_of_all_agrees_with_pytorch(torch, name, call, is_complex, data, shape, seed):
    agree_over_all(torch, call, is_complex, data, shape, seed, name not in PRODUCTS)


@pytest.mark.parametrize(
    "name", ["sum", "mean", "prod", "norm", "norm 3", "logsumexp", "cumsum", "cumprod"]
)
@pytest.mark.parametrize("dim", [0, 1])
def test_reduction_gradients_are_those_of_finite_differences(rng, name, dim):
    call, _, is_complex = next(row[1:] for row in ALONG if row[0] == name)
    gradients_are_right(call, is_complex, rng, dim)


@pytest.mark.parametrize("dim", [None, 1])
def test_hook_may_change_the_gradient_of_a_mean_in_place(lib, dim):
    x = lib.arange(6.0).reshape(2, 3).requires_grad_()
    y = x * 1
    y.register_hook(lambda grad: grad.mul_(lib.arange(6.0).reshape(2, 3)))
    y.mean(dim).sum().backward()
    divisor = 6 if dim is None else 3
    assert lib.allclose(x.grad, lib.arange(6.0).reshape(2, 3) / divisor)


@pytest.mark.parametrize("nan", [False, True])
@pytest.mark.parametrize("dim", [0, 1])
def test_largest_size_at_ties_and_nan_agrees_with_pytorch(torch, nan, dim):
    x = TIES.copy()
    if nan:
        x[0, 2] = x[1, 2] = x[1, 3] = np.nan
        norms = [m.from_numpy(x).norm(float("inf"), dim).numpy() for m in (convcore, torch)]
        np.testing.assert_array_equal(*norms)
    else:
        agree(torch, lambda m, x: x.norm(float("inf"), dim), x)


ZEROS = [[2.0, 3.0, 4.0], [2.0, 0.0, 4.0], [0.0, 3.0, 0.0], [0.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.prod(1),
        lambda x: x.prod(0),
        lambda x: x.prod(),
        lambda x: x.cumprod(1),
        lambda x: x.cumprod(0),
        lambda x: x[1].prod() * x[2].cumprod(0),
    ],
)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_product_of_zeros_has_gradients_of_every_order(torch, call, dtype):
    x = np.array(ZEROS, dtype)
    agree(torch, lambda m, x: call(x), x)
    x = convcore.from_numpy(x).requires_grad_()
    assert gradcheck(call, (x,))
    assert gradgradcheck(call, (x,))


@pytest.mark.parametrize(
    "call",
    [
        lambda m, x: x.sum(),
        lambda m, x: x.sum(1),
        lambda m, x: x.prod(0),
        lambda m, x: x.cumsum(0),
        lambda m, x: x.cumprod(1),
        lambda m, x: x.any(),
        lambda m, x: x.all(1),
        lambda m, x: x.sum(dtype=m.float32),
        lambda m, x: x.mean(dtype=m.float64),
        lambda m, x: x.prod(dtype=m.float64),
        lambda m, x: x.cumsum(0, dtype=m.int32),
        lambda m, x: x.count_nonzero(1),
    ],
)
@pytest.mark.parametrize("dtype", [*INTEGER, "bool"])
def test_integers_and_bools_agree_with_pytorch(torch, rng, call, dtype):
    agree(torch, call, rng.integers(0, 5, (3, 4)).astype(dtype))


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("zeros", [0, 2])
@examples(12)
@given(st.sampled_from([(5,), (2, 3), (2, 3, 2, 3)]), SEEDS)
def test_products_of_float16_are_rounded_once_in_every_order(torch, name, zeros, shape, seed):
    call, x = PRODUCTS[name], drawn(np.random.default_rng(seed), shape, "float16", -2, 2)
    x.ravel()[:zeros] = 0
    ours = differentiated(convcore, call, (x,), seed)
    right = differentiated(torch, lambda m, x: call(m, x.double()).half(), (x,), seed)
    for what, expected in right.items():
        same(ours[what], expected, what, 1e-3)


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("dtype", [convcore.float16, convcore.bfloat16])
def test_gradients_of_products_of_16_bits_are_those_of_float32(rng, name, dtype):
    pytest.importorskip("ml_dtypes")
    call, x = PRODUCTS[name], convcore.from_numpy(rng.uniform(-2, 2, (3, 4))).to(dtype)
    narrow, wide = (
        _second_gradient(function, x)
        for function in (call, lambda m, x: call(m, x.float()).to(dtype))
    )
    assert narrow.dtype is dtype and convcore.equal(narrow, wide)


def _second_gradient(call, x):
    x = x.clone().requires_grad_()
    out = call(convcore, x)
    (grad,) = convcore.autograd.grad(out, x, convcore.ones_like(out), create_graph=True)
    return convcore.autograd.grad(grad, x, convcore.ones_like(x))[0]


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_sum_in_another_dtype_converts_first_and_its_gradient_back(torch, rng, dtype):
    x = rng.normal(size=(3, 4)).astype(dtype)
    agree(torch, lambda m, x: x.sum(0, dtype=m.float64), x, rtol=1e-3)
    agree(torch, lambda m, x: x.mean(1, dtype=m.float64), x, rtol=1e-3)


@pytest.mark.parametrize(
    ("shape", "dim"),
    [((100_000, 3), 0), ((3, 100_000), 1), ((1000, 300), (0, 1)), ((400, 7, 400), (0, 2))],
)
def test_long_sums_of_float32_are_accurate(rng, shape, dim):
    x = rng.random(shape, dtype=np.float32)
    exact = x.sum(dim, dtype=np.float64)
    eps = np.finfo(np.float32).eps
    for array in (x, np.asfortranarray(x), x[::-1]):
        ours = convcore.from_numpy(array.copy(order="K")).sum(dim).numpy()
        assert np.max(np.abs(ours / array.sum(dim, dtype=np.float64) - 1)) < 2 * eps
    number = x.size / exact.size
    means = convcore.from_numpy(x).mean(dim).numpy()
    assert np.max(np.abs(means * number / exact - 1)) < 2 * eps
    spread = convcore.from_numpy(x + 1000).var(dim).numpy()
    expected = (x + np.float32(1000)).astype(np.float64).var(dim, ddof=1)
    assert np.max(np.abs(spread / expected - 1)) < 1e-4


def test_mean_of_float16_does_not_overflow():
    x = convcore.full((1000,), 1000.0, dtype=convcore.float16)
    assert x.mean().item() == 1000
    assert x.sum().item() == float("inf")
    assert x.var().item() == 0


def test_logsumexp_does_not_overflow(torch):
    x = np.array([[1000.0, 1000.0], [-1000.0, -np.inf], [-np.inf, -np.inf], [np.inf, 1.0]])
    values = [m.logsumexp(m.from_numpy(x), 1).numpy() for m in (convcore, torch)]
    np.testing.assert_allclose(*values, rtol=1e-14)


@pytest.mark.parametrize("p", [0.5, 1, 1.5, 2, 3, float("inf")])
def test_norm_of_zeros_has_gradients_without_nan(torch, p):
    first = []
    for lib in (convcore, torch):
        x = lib.tensor([[0.0, 0.0], [0.0, 2.0]], requires_grad=True)
        (grad,) = lib.autograd.grad(x.norm(p, 1).sum(), x, create_graph=True)
        first.append(grad.detach().numpy())
        if lib is convcore and grad.requires_grad:
            assert convcore.autograd.grad((grad * grad).sum(), x)[0].isfinite().all()
    np.testing.assert_allclose(*first, rtol=1e-6)


ERRORS = {
    "axis": lambda m: m.ones(2).sum(3),
    "axis twice": lambda m: m.ones(2).sum((0, -1)),
    "axis of a number": lambda m: m.tensor(1.0).mean(1),
    "mean of integers": lambda m: m.tensor([1]).mean(),
    "mean as integers": lambda m: m.ones(2).mean(dtype=m.int32),
    "norm of integers": lambda m: m.tensor([1, 2]).norm(),
}
test_errors_are_pytorchs = errors_agree(ERRORS)


@pytest.mark.parametrize(
    "call",
    [
        lambda m, x: x.sum(),
        lambda m, x: x.sum(1),
        lambda m, x: x.prod(0),
        lambda m, x: x.mean(0),
        lambda m, x: x.any(0),
        lambda m, x: x.all(),
        lambda m, x: x.norm(),
        lambda m, x: x.cumsum(0),
        lambda m, x: x.logsumexp(0),
    ],
)
def test_reductions_of_nothing_agree_with_pytorch(torch, call):
    x = np.zeros((0, 2))
    results = [call(m, m.from_numpy(x)).numpy() for m in (convcore, torch)]
    assert results[0].shape == results[1].shape
    np.testing.assert_array_equal(*results)


# Sums without NaN


@pytest.mark.parametrize("name", ["nansum", "nanmean"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(
    ("dim", "keepdim"), [(None, False), (0, True), (-1, False), ((0, 1), True)]
)
def test_sums_without_nan_agree_with_pytorch(torch, rng, seed, name, dtype, dim, keepdim):
    x = np.where(rng.random((3, 4)) < 0.3, np.nan, rng.normal(size=(3, 4))).astype(dtype)
    x[:, 0] = x[0] = 1
    rtol = 1e-2 if dtype == "float16" else 1e-5
    agree(torch, lambda m, x: getattr(m, name)(x, dim, keepdim), x, seed=seed, nodes=1, rtol=rtol)
    agree(torch, lambda m, x: getattr(x, name)(dim, dtype=m.float64), x, seed=seed, rtol=rtol)


def test_sums_without_nan_of_other_dtypes_are_as_in_pytorch(torch):
    agree(torch, lambda m, x: m.nansum(x), np.arange(6))
    agree(torch, lambda m, x: x.nansum(0), np.ones((2, 2), bool))
    agree(torch, lambda m, x: x.detach().nanmean(), np.full(3, np.nan))
    same_error(torch, lambda m, x: m.nansum(x), np.ones(2, "complex64"))
    same_error(torch, lambda m, x: m.nanmean(x), np.arange(2))


def test_gradients_of_sums_without_nan_are_those_of_finite_differences(rng):
    x = convcore.from_numpy(rng.uniform(0.3, 0.8, (2, 3))).requires_grad_()
    assert gradcheck(convcore.nansum, (x,))
    assert gradgradcheck(convcore.nansum, (x,))


@pytest.mark.parametrize("dtype", ["int32", "int16", "uint8", "float16", "complex64", "bool"])
def test_products_are_of_the_dtype_that_is_asked_for(dtype):
    found = _products(convcore, dtype)
    assert {one.dtype for one in found} == {getattr(convcore, dtype)}
    if dtype == "uint8":
        assert found[-1].tolist() == [1, 91, 16471 % 256, 16471 * 271 % 256]


@pytest.mark.parametrize("dtype", ["int32", "int16", "uint8", "float16", "complex64", "bool"])
def test_products_in_another_dtype_agree_with_pytorch(torch, dtype):
    ours, theirs = ([one.tolist() for one in _products(m, dtype)] for m in (convcore, torch))
    assert ours == theirs


def _products(m, dtype):
    x, dt = m.arange(1, 300, 90), getattr(m, dtype)
    found = [m.prod(x, dtype=dt), m.prod(x, 0, dtype=dt), x.prod(0, True, dtype=dt)]
    return found if dtype == "bool" else [*found, m.cumprod(x, 0, dtype=dt)]


TYPED = {
    "sum": lambda lib, x, **how: lib.sum(x, 0, **how),
    "prod": lambda lib, x, **how: lib.prod(x, 0, **how),
    "cumsum": lambda lib, x, **how: lib.cumsum(x, 0, **how)[1],
    "cumprod": lambda lib, x, **how: lib.cumprod(x, 0, **how)[1],
}


@pytest.mark.parametrize("name", TYPED)
def test_the_dtype_of_out_is_computed_in(torch, name):
    x = np.array([[1.5, 2.5], [2.0, 3.0]])
    function = TYPED[name]
    for lib in (convcore, torch):
        given = lib.tensor(x)
        assert function(lib, given, dtype=lib.int32).dtype is lib.int32
        out = lib.empty(0, dtype=lib.int64)
        assert function(lib, given, out=out).tolist() == ([3, 5] if "sum" in name else [2, 6])
        with pytest.raises(RuntimeError, match="to have dtype float, but got long int instead"):
            function(lib, given, out=out, dtype=lib.float32)


@pytest.mark.parametrize("p", [2, 3, 0.5])
def test_a_norm_of_one_element_is_its_size(torch, p):
    for value in (1e30, 1e-30, 1e30 + 1e30j):
        for shape in ((), (1,), (1, 1)):
            found, expected = (
                lib.full(shape, value, dtype=getattr(lib, kind)).norm(p)
                for lib in (convcore, torch)
                for kind in ["complex64" if isinstance(value, complex) else "float32"]
            )
            assert found.item() == pytest.approx(expected.item(), rel=1e-6)
    rows = convcore.tensor([[1e30], [2.0]]).norm(p, 1)
    assert rows.tolist() == pytest.approx([1e30, 2])
