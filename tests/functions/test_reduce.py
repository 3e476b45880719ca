"""Sums, means, extremes, orders and the like, beside PyTorch's: values and gradients."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from against_torch import agree, same_error
from elements import COMPLEX, INTEGER, REAL, SEEDS, TOLERANCE, drawn, few
from hypothesis import given
from hypothesis import strategies as st

import convcore
from convcore.autograd import gradcheck, gradgradcheck

# (name, call with an axis or axes and keepdim, whether it takes several axes, complex numbers)
ALONG = [
    ("sum", lambda m, x, dim, k: m.sum(x, dim, k), True, True),
    ("mean", lambda m, x, dim, k: m.mean(x, dim, k), True, True),
    ("prod", lambda m, x, dim, k: m.prod(x, dim, k), False, True),
    ("var", lambda m, x, dim, k: m.var(x, dim, keepdim=k, correction=0), True, True),
    ("std", lambda m, x, dim, k: m.std(x, dim, False, k), True, True),
    ("norm", lambda m, x, dim, k: m.norm(x, 2, dim, k), True, True),
    ("norm 1", lambda m, x, dim, k: x.norm(1, dim, k), True, True),
    ("norm inf", lambda m, x, dim, k: x.norm(float("inf"), dim, k), True, False),
    ("norm -inf", lambda m, x, dim, k: x.norm(-float("inf"), dim, k), True, False),
    ("norm 0", lambda m, x, dim, k: x.norm(0, dim, k), True, False),
    ("norm 3", lambda m, x, dim, k: x.norm(3, dim, k), True, True),
    ("norm 1.5", lambda m, x, dim, k: x.norm(1.5, dim, k), True, True),
    ("norm .5", lambda m, x, dim, k: x.norm(0.5, dim, k), True, False),
    ("logsumexp", lambda m, x, dim, k: m.logsumexp(x, dim, k), True, False),
    ("amax", lambda m, x, dim, k: m.amax(x, dim, k), True, False),
    ("amin", lambda m, x, dim, k: m.amin(x, dim, k), True, False),
    ("max", lambda m, x, dim, k: m.max(x, dim, k), False, False),
    ("min", lambda m, x, dim, k: m.min(x, dim, k), False, False),
    ("median", lambda m, x, dim, k: m.median(x, dim, k), False, False),
    ("aminmax", lambda m, x, dim, k: m.aminmax(x, dim=dim, keepdim=k), False, False),
    ("argmax", lambda m, x, dim, k: m.argmax(x, dim, k), False, False),
    ("argmin", lambda m, x, dim, k: m.argmin(x, dim, k), False, False),
    ("any", lambda m, x, dim, k: m.any(x > 0, dim, k), True, False),
    ("all", lambda m, x, dim, k: m.all(x > 0, dim, k), True, False),
    ("count_nonzero", lambda m, x, dim, k: m.count_nonzero(x.detach() > 0, dim), True, False),
    ("cumsum", lambda m, x, dim, k: m.cumsum(x, dim), False, True),
    ("cumprod", lambda m, x, dim, k: m.cumprod(x, dim), False, True),
    ("sort", lambda m, x, dim, k: m.sort(x, dim, descending=k), False, False),
    ("argsort", lambda m, x, dim, k: m.argsort(x, dim, k), False, False),
    ("topk", lambda m, x, dim, k: m.topk(x, 1, dim, largest=k), False, False),
]

WHOLE = [
    ("sum", lambda m, x: x.sum(), True),
    ("mean", lambda m, x: x.mean(), True),
    ("prod", lambda m, x: x.prod(), True),
    ("var", lambda m, x: x.var(correction=0), True),
    ("std", lambda m, x: x.std(unbiased=False), True),
    ("norm", lambda m, x: x.norm(), True),
    ("norm 1", lambda m, x: x.norm(p=1), True),
    ("max", lambda m, x: x.max(), False),
    ("min", lambda m, x: x.min(), False),
    ("amax", lambda m, x: x.amax(), False),
    ("median", lambda m, x: x.median(), False),
    ("aminmax", lambda m, x: m.aminmax(x), False),
    ("argmax", lambda m, x: x.argmax(), False),
    ("argmin", lambda m, x: m.argmin(x, keepdim=True), False),
    ("any", lambda m, x: (x > 0).any(), False),
    ("all", lambda m, x: m.all(x > 0), False),
    ("count_nonzero", lambda m, x: x.detach().count_nonzero(), False),
]

SHAPES = st.sampled_from([(), (1,), (5,), (2, 3), (3, 1, 2), (2, 3, 2, 3)])


@pytest.mark.parametrize(
    ("name", "call", "several", "is_complex"), ALONG, ids=[row[0] for row in ALONG]
)
@few(12)
@given(st.data(), SHAPES, SEEDS, st.booleans())
def test_reduction_over_axes_agrees_with_pytorch(
    torch, name, call, several, is_complex, data, shape, seed, keepdim
):
    dtype = data.draw(st.sampled_from(REAL + COMPLEX * is_complex))
    rank = max(len(shape), 1)
    one = st.integers(-rank, rank - 1)
    some = st.lists(st.integers(0, rank - 1), min_size=1, unique=True).map(tuple)
    dim = data.draw(one | some if several and shape else one)
    x = drawn(np.random.default_rng(seed), shape, dtype, -2, 2)
    agree(
        torch,
        lambda m, x: call(m, x, dim, keepdim),
        x,
        seed=seed,
        nodes=1,
        rtol=TOLERANCE[dtype],
    )


@pytest.mark.parametrize(("name", "call", "is_complex"), WHOLE, ids=[row[0] for row in WHOLE])
@few(8)
@given(st.data(), SHAPES, SEEDS)
def test_reduction_of_all_agrees_with_pytorch(torch, name, call, is_complex, data, shape, seed):
    dtype = data.draw(st.sampled_from(REAL + COMPLEX * is_complex))
    x = drawn(np.random.default_rng(seed), shape, dtype, -2, 2)
    agree(torch, call, x, seed=seed, nodes=1, rtol=TOLERANCE[dtype])


SMOOTH = ("sum", "mean", "prod", "var", "std", "norm", "norm 3", "logsumexp", "cumsum", "cumprod")


@pytest.mark.parametrize("name", [*SMOOTH, "amax", "max", "median", "sort", "topk"])
@pytest.mark.parametrize("dim", [0, 1])
def test_reduction_gradients_are_those_of_finite_differences(rng, name, dim):
    call, _, is_complex = next(row[1:] for row in ALONG if row[0] == name)

    def function(x):
        out = call(convcore, x, dim, True)
        return out[0] if isinstance(out, tuple) else out

    for dtype in ["float64"] + ["complex128"] * is_complex:
        x = convcore.from_numpy(drawn(rng, (3, 2), dtype, -2, 2)).requires_grad_()
        assert gradcheck(function, (x,))
        assert gradgradcheck(function, (x,))


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


EXTREMES = ("max", "min", "median")
TIES = np.array([[1.0, 3.0, 3.0, -1.0], [2.0, 2.0, 2.0, 2.0], [-1.0, 0.0, -0.0, 3.0]])


@pytest.mark.parametrize(
    "name", ["amax", "amin", "max", "min", "argmax", "argmin", "sort", "norm inf"]
)
@pytest.mark.parametrize("nan", [False, True])
@pytest.mark.parametrize("dim", [0, 1])
def test_ties_and_nan_agree_with_pytorch(torch, name, nan, dim):
    x = TIES.copy()
    if nan:
        x[0, 2] = x[1, 2] = x[1, 3] = np.nan
    call = next(row[1] for row in ALONG if row[0] == name)

    def function(m, x):
        out = call(m, x, dim, False)
        # PyTorch does not say which of several equal elements `max` gives the index of.
        return out.values if name in ("max", "min") else out

    if nan:
        found = []
        for lib in (convcore, torch):
            out = function(lib, lib.from_numpy(x))
            found.append((out if name != "sort" else out.values).numpy())
        np.testing.assert_array_equal(*found)
    elif name in ("max", "min"):
        values = [function(m, m.from_numpy(x)).numpy() for m in (convcore, torch)]
        np.testing.assert_array_equal(*values)
    else:
        agree(torch, function, x)


@pytest.mark.parametrize(
    ("name", "nan"),
    # The gradients of PyTorch's amax and amin are NaN everywhere if there is one.
    [*((n, False) for n in ("amax", "amin")), *((n, b) for n in EXTREMES for b in (False, True))],
)
def test_reduction_of_all_shares_the_gradient_between_ties(torch, name, nan):
    x = TIES.copy()
    if nan:
        x[0, 2] = x[1, 2] = np.nan
    grads = []
    for lib in (convcore, torch):
        leaf = lib.from_numpy(x.copy()).requires_grad_()
        getattr(leaf, name)().backward()
        grads.append(leaf.grad.numpy())
    np.testing.assert_allclose(*grads, rtol=1e-14)


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
        lambda m, x: x.max(),
        lambda m, x: x.max(1).values,
        lambda m, x: x.amin(0),
        lambda m, x: x.sum(dtype=m.float32),
        lambda m, x: x.mean(dtype=m.float64),
        lambda m, x: x.prod(dtype=m.float64),
        lambda m, x: x.cumsum(0, dtype=m.int32),
        lambda m, x: x.count_nonzero(1),
        lambda m, x: x.sort(1),
    ],
)
@pytest.mark.parametrize("dtype", [*INTEGER, "bool"])
def test_integers_and_bools_agree_with_pytorch(torch, rng, call, dtype):
    agree(torch, call, rng.integers(0, 5, (3, 4)).astype(dtype))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_sum_in_another_dtype_converts_first_and_its_gradient_back(torch, rng, dtype):
    x = rng.normal(size=(3, 4)).astype(dtype)
    agree(torch, lambda m, x: x.sum(0, dtype=m.float64), x, rtol=1e-3)
    agree(torch, lambda m, x: x.mean(1, dtype=m.float64), x, rtol=1e-3)


def test_numpys_names_of_arguments_are_understood():
    x = convcore.arange(6.0).reshape(2, 3)
    assert x.sum(axis=1, keepdims=True).shape == (2, 1)
    assert convcore.max(x, axis=0).values.tolist() == [3, 4, 5]
    assert x.argmax(axis=1).tolist() == [2, 2]


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


def test_results_of_max_print_and_unpack_as_pytorchs(torch):
    for name in ("max", "min", "median", "sort", "topk"):
        extra = (1,) if name == "topk" else ()
        shown = []
        for lib in (convcore, torch):
            x = lib.tensor([[3.0, 1.0], [2.0, 5.0]])
            result = getattr(x, name)(*extra, dim=1)
            values, indices = result
            assert values is result.values
            assert indices is result[1]
            shown.append(repr(result))
        assert shown[0] == shown[1]


def test_results_of_max_can_be_copied_and_pickled():
    result = convcore.ones(2, 2).max(0)
    for again in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
        assert type(again) is type(result)
        assert again.values.tolist() == [1, 1]


def test_changing_the_indices_in_place_is_noticed():
    x = convcore.tensor([[1.0, 2.0]], requires_grad=True)
    values, indices = x.max(1)
    indices.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        values.sum().backward()


def test_sort_keeps_equal_elements_in_order(torch, rng):
    x = rng.integers(0, 3, (2, 40)).astype(float)
    for descending in (False, True):
        agree(torch, lambda m, x: m.sort(x, descending=descending, stable=True), x)  # noqa: B023
    assert convcore.topk(convcore.tensor([1, 2, 2]), 2).indices.tolist() == [1, 2]


ERRORS = {
    "axis": lambda m: m.ones(2).sum(3),
    "axis twice": lambda m: m.ones(2).sum((0, -1)),
    "axis of a number": lambda m: m.tensor(1.0).mean(1),
    "mean of integers": lambda m: m.tensor([1]).mean(),
    "mean as integers": lambda m: m.ones(2).mean(dtype=m.int32),
    "var of integers": lambda m: m.tensor([1, 2]).var(),
    "norm of integers": lambda m: m.tensor([1, 2]).norm(),
    "max of nothing": lambda m: m.zeros(0).max(),
    "max along nothing": lambda m: m.zeros(0, 2).max(0),
    "amin along nothing": lambda m: m.zeros(2, 0).amin(1),
    "argmax of nothing": lambda m: m.zeros(0).argmax(),
    "argmax along nothing": lambda m: m.zeros(0, 2).argmax(0),
    "argmax of bools": lambda m: m.tensor([True]).argmax(),
    "topk": lambda m: m.ones(2).topk(3),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_pytorchs(torch, name):
    same_error(torch, ERRORS[name])


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
        lambda m, x: x.max(1).values,
        lambda m, x: x.logsumexp(0),
        lambda m, x: x.median(),
    ],
)
def test_reductions_of_nothing_agree_with_pytorch(torch, call):
    x = np.zeros((0, 2))
    results = [call(m, m.from_numpy(x)).numpy() for m in (convcore, torch)]
    assert results[0].shape == results[1].shape
    np.testing.assert_array_equal(*results)
