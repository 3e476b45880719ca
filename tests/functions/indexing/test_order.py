"""Extremes, their places, medians and sorts, beside PyTorch's: values and gradients."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from against_torch import agree
from call_tests import errors_agree
from elements import INTEGER, SEEDS
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from reductions import SHAPES, TIES, agree_over_all, agree_over_axes, gradients_are_right

import convcore

# (name, call with an axis or axes and keepdim, whether it takes several axes, complex numbers)
ALONG = [
    ("amax", lambda m, x, dim, k: m.amax(x, dim, k), True, False),
    ("amin", lambda m, x, dim, k: m.amin(x, dim, k), True, False),
    ("max", lambda m, x, dim, k: m.max(x, dim, k), False, False),
    ("min", lambda m, x, dim, k: m.min(x, dim, k), False, False),
    ("median", lambda m, x, dim, k: m.median(x, dim, k), False, False),
    ("aminmax", lambda m, x, dim, k: m.aminmax(x, dim=dim, keepdim=k), False, False),
    ("argmax", lambda m, x, dim, k: m.argmax(x, dim, k), False, False),
    ("argmin", lambda m, x, dim, k: m.argmin(x, dim, k), False, False),
    ("sort", lambda m, x, dim, k: m.sort(x, dim, descending=k), False, False),
    ("argsort", lambda m, x, dim, k: m.argsort(x, dim, k), False, False),
    ("topk", lambda m, x, dim, k: m.topk(x, 1, dim, largest=k), False, False),
]


WHOLE = [
    ("max", lambda m, x: x.max(), False),
    ("min", lambda m, x: x.min(), False),
    ("amax", lambda m, x: x.amax(), False),
    ("median", lambda m, x: x.median(), False),
    ("aminmax", lambda m, x: m.aminmax(x), False),
    ("argmax", lambda m, x: x.argmax(), False),
    ("argmin", lambda m, x: m.argmin(x, keepdim=True), False),
]


@pytest.mark.parametrize(
    ("name", "call", "several", "is_complex"), ALONG, ids=[row[0] for row in ALONG]
)
@examples(12)
@given(st.data(), SHAPES, SEEDS, st.booleans())
def test_extreme_over_axes_agrees_with_pytorch(
    torch, name, call, several, is_complex, data, shape, seed, keepdim
):
    agree_over_axes(torch, call, several, is_complex, data, shape, seed, keepdim)


@pytest.mark.parametrize(("name", "call", "is_complex"), WHOLE, ids=[row[0] for row in WHOLE])
@examples(8)
@given(st.data(), SHAPES, SEEDS)
def test_extreme_of_all_agrees_with_pytorch(torch, name, call, is_complex, data, shape, seed):
    agree_over_all(torch, call, is_complex, data, shape, seed)


@pytest.mark.parametrize("name", ["amax", "max", "median", "sort", "topk"])
@pytest.mark.parametrize("dim", [0, 1])
def test_extreme_gradients_are_those_of_finite_differences(rng, name, dim):
    call, _, is_complex = next(row[1:] for row in ALONG if row[0] == name)
    gradients_are_right(call, is_complex, rng, dim)


EXTREMES = ("max", "min", "median")


@pytest.mark.parametrize("name", ["amax", "amin", "max", "min", "argmax", "argmin", "sort"])
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
        lambda m, x: x.max(),
        lambda m, x: x.max(1).values,
        lambda m, x: x.amin(0),
        lambda m, x: x.sort(1),
    ],
)
@pytest.mark.parametrize("dtype", [*INTEGER, "bool"])
def test_integers_and_bools_agree_with_pytorch(torch, rng, call, dtype):
    agree(torch, call, rng.integers(0, 5, (3, 4)).astype(dtype))


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
    "max of nothing": lambda m: m.zeros(0).max(),
    "max along nothing": lambda m: m.zeros(0, 2).max(0),
    "amin along nothing": lambda m: m.zeros(2, 0).amin(1),
    "argmax of nothing": lambda m: m.zeros(0).argmax(),
    "argmax along nothing": lambda m: m.zeros(0, 2).argmax(0),
    "argmax of bools": lambda m: m.tensor([True]).argmax(),
    "topk": lambda m: m.ones(2).topk(3),
}
test_errors_are_pytorchs = errors_agree(ERRORS)


@pytest.mark.parametrize("call", [lambda x: x.max(1).values, lambda x: x.median()])
def test_extremes_of_nothing_agree_with_pytorch(torch, call):
    x = np.zeros((0, 2))
    results = [call(m.from_numpy(x)).numpy() for m in (convcore, torch)]
    assert results[0].shape == results[1].shape
    np.testing.assert_array_equal(*results)


def test_complex_numbers_have_no_least():
    with pytest.raises(NotImplementedError, match=r"aminmax_cpu. not implemented for 'ComplexFl"):
        convcore.aminmax(convcore.tensor([1j]))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "bool"])
@pytest.mark.parametrize("name", ["sort", "argsort"])
def test_indices_beyond_any_memory_are_one_error_of_function_and_method(name, dtype):
    x = convcore.zeros(1, dtype=getattr(convcore, dtype)).expand(2**61)
    for call in (lambda: getattr(convcore, name)(x), getattr(x, name)):
        with pytest.raises(RuntimeError, match=r"sort\(\): the result would be larger"):
            call()


@pytest.mark.parametrize("name", ["sort", "argsort", "topk"])
def test_an_axis_that_is_not_there_is_said_before_a_complex_dtype(torch, name):
    k = (1,) if name == "topk" else ()
    for dim, error in ((5, IndexError), (1, RuntimeError)):
        for lib in (convcore, torch):
            x = lib.ones(2, 3, dtype=lib.complex64)
            with pytest.raises(error):
                getattr(x, name)(*k, dim=dim)
