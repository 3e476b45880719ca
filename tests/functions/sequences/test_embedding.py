"""Embeddings: values, gradients and errors, beside NumPy and PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree, same_error

import convcore
from convcore.autograd import gradcheck, gradgradcheck
from convcore.nn import functional as F

ROWS = np.array([[1, 4, 0], [4, 4, 2]])


def table(rng, dtype="float64", size=(5, 3)):
    return rng.normal(size=size).astype(dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_gradient_is_the_sum_of_what_goes_to_each_row(rng, dtype):
    weight = convcore.from_numpy(table(rng, dtype)).requires_grad_()
    out = F.embedding(convcore.from_numpy(ROWS), weight)
    grad = rng.integers(-4, 5, size=(2, 3, 3)).astype(dtype)
    out.backward(convcore.from_numpy(grad))
    expected = np.zeros((5, 3), dtype)
    np.add.at(expected, ROWS, grad)
    np.testing.assert_array_equal(out.numpy(force=True), weight.numpy(force=True)[ROWS])
    np.testing.assert_array_equal(weight.grad.numpy(), expected)
    assert weight.grad.numpy().dtype == dtype


def test_gradient_is_summed_in_the_order_of_the_numbers(rng):
    rows, grad = rng.integers(0, 7, 5000), rng.normal(size=(5000, 2)).astype("f4")
    weight = convcore.zeros(7, 2, requires_grad=True)
    F.embedding(convcore.from_numpy(rows), weight).backward(convcore.from_numpy(grad))
    expected = np.zeros((7, 2), "f4")
    for row, values in zip(rows, grad, strict=True):
        expected[row] += values
    np.testing.assert_array_equal(weight.grad.numpy(), expected)


@pytest.mark.parametrize(
    "options", [{}, {"padding_idx": 4}, {"padding_idx": -5}, {"scale_grad_by_freq": True}], ids=str
)
@pytest.mark.parametrize("shape", [(), (6,), (2, 3), (0,), (2, 0, 3)], ids=str)
def test_embedding_agrees_with_pytorch(torch, rng, options, shape):
    rows = rng.integers(0, 5, shape)
    rows, weight = np.asarray(rows), table(rng)

    def function(lib, weight):
        return lib.nn.functional.embedding(lib.from_numpy(rows), weight, **options)

    pairs = zip(*(first_order(lib, function, weight) for lib in (convcore, torch)), strict=True)
    for ours, theirs in pairs:
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    # PyTorch's second gradient fails of no rows, and leaves frequencies out.
    if rows.size and "scale_grad_by_freq" not in options:
        agree(torch, function, weight, rtol=1e-12)


def test_gradients_of_gradients(rng):
    weight = convcore.from_numpy(table(rng)).requires_grad_()

    def function(weight):
        return F.embedding(convcore.from_numpy(ROWS), weight, padding_idx=3).pow(3)

    assert gradcheck(function, (weight,)) and gradgradcheck(function, (weight,))


@pytest.mark.parametrize("p", [1.0, 2.0, np.inf])
def test_max_norm_changes_the_rows_that_are_looked_up(torch, rng, p):
    weight = table(rng, "float32") * 3
    found = []
    for lib in (convcore, torch):
        own = lib.from_numpy(weight.copy()).requires_grad_()
        before = own._version
        out = lib.nn.functional.embedding(lib.from_numpy(ROWS), own, max_norm=1.0, norm_type=p)
        assert own._version == before + 1
        found.append((out.detach().numpy(), own.detach().numpy()))
    np.testing.assert_allclose(*(one[0] for one in found), rtol=1e-6)
    np.testing.assert_allclose(*(one[1] for one in found), rtol=1e-6)
    assert np.linalg.norm(found[0][0], p, axis=-1).max() <= 1
    np.testing.assert_array_equal(found[0][1][3], weight[3])


@pytest.mark.parametrize(
    "function",
    [
        lambda lib, F, w: F.embedding(lib.tensor([7]), w),
        lambda lib, F, w: F.embedding(lib.tensor([-1]), w),
        lambda lib, F, w: F.embedding(lib.tensor([1.0]), w),
        lambda lib, F, w: F.embedding(lib.tensor([1], dtype=lib.int16), w),
        lambda lib, F, w: F.embedding(lib.tensor([1]), w[0]),
        lambda lib, F, w: F.embedding([1], w),
        lambda lib, F, w: F.embedding(lib.tensor([1]), 3),
        lambda lib, F, w: F.embedding(lib.tensor([1]), w, padding_idx=5),
        lambda lib, F, w: F.embedding(lib.tensor([1]), w, padding_idx=-6),
    ],
)
def test_errors_are_pytorchs(torch, function, rng):
    def called(lib, weight):
        return function(lib, lib.nn.functional, weight)

    same_error(torch, called, table(rng, "float32"))


def test_a_padding_row_gets_no_gradient_not_even_nan(lib):
    weight = lib.ones(3, 2, requires_grad=True)
    found = lib.nn.functional.embedding(lib.tensor([1, 2]), weight, padding_idx=1)
    found.backward(lib.tensor([[float("nan"), 1.0], [2.0, 3.0]]))
    assert weight.grad.tolist() == [[0, 0], [0, 0], [2, 3]]


def test_sparse_gradients_are_refused():
    with pytest.raises(NotImplementedError, match="sparse=True is not supported"):
        F.embedding(convcore.tensor([[1]]), convcore.ones(5, 3), sparse=True)


def rng_of(seed):
    return np.random.default_rng(seed)


def first_order(lib, function, *arrays):
    leaves = [lib.from_numpy(array.copy()).requires_grad_() for array in arrays]
    out = function(lib, *leaves)
    grad = rng_of(3).normal(size=tuple(out.shape))
    out.backward(lib.from_numpy(grad))
    return [out.detach().numpy(), *(leaf.grad.numpy() for leaf in leaves)]


def test_an_empty_gradient_is_zeros():
    weight = convcore.ones(4, 2, requires_grad=True)
    F.embedding(convcore.tensor([], dtype=convcore.int64), weight).sum().backward()
    assert not weight.grad.any()


@pytest.mark.parametrize("index", [1, [0, 1], [[0, 1], [1, 2]]])
def test_rows_are_no_view_so_that_hooks_see_what_is_changed_in_place(torch, index):
    def changed(m, x):
        y = m.nn.functional.embedding(m.tensor(index), x)
        assert not y._is_view() and type(y.grad_fn).__name__ == "EmbeddingBackward0"
        y.register_hook(lambda grad: grad * 2)
        return y.cos_()

    agree(torch, changed, np.array([[0.5, 1.0], [1.5, 2.0], [2.5, 3.0]]))
