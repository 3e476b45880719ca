"""Embeddings and bags of them: values, gradients and errors, beside NumPy and PyTorch."""

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
        lambda lib, F, w: F.embedding_bag(lib.tensor([1]), w),
        lambda lib, F, w: F.embedding_bag(lib.tensor([1]), w, lib.tensor([[0]])),
        lambda lib, F, w: F.embedding_bag(lib.tensor([[[1]]]), w),
        lambda lib, F, w: F.embedding_bag(lib.tensor([[1]]), w[0]),
        lambda lib, F, w: F.embedding_bag(lib.tensor([[1]]), w, mode="min"),
        lambda lib, F, w: F.embedding_bag(lib.tensor([[7]]), w),
        lambda lib, F, w: F.embedding_bag(lib.tensor([[1.0]]), w),
        lambda lib, F, w: F.embedding_bag(lib.tensor([[1]]), w, padding_idx=9),
        lambda lib, F, w: F.embedding_bag(lib.tensor([[1]]), w, mode="max", scale_grad_by_freq=1),
        lambda lib, F, w: F.embedding_bag(lib.tensor([[1]]), w, per_sample_weights=w),
        lambda lib, F, w: F.embedding_bag(lib.tensor([[1]]), w, per_sample_weights=w[:1, :1]),
        lambda lib, F, w: F.embedding_bag(
            lib.tensor([[1]]), w, mode="sum", per_sample_weights=w[:1, :1].double()
        ),
        lambda lib, F, w: F.embedding_bag(
            lib.tensor([1]), w, lib.tensor([]).long(), include_last_offset=True
        ),
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


def test_a_matrix_of_bags_has_no_offsets():
    with pytest.raises(ValueError, match="if input is 2D, then offsets has to be None"):
        F.embedding_bag(convcore.tensor([[1]]), convcore.ones(5, 3), convcore.tensor([0]))


# PyTorch's kernel for float32 sums and means reads the last offset; its others do not.
@pytest.mark.parametrize("last", [2, 3, 4])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_the_last_bag_reaches_to_the_end_whatever_the_last_offset_is(mode, last):
    weight = convcore.arange(10.0).reshape(5, 2).requires_grad_()
    rows, offsets = convcore.tensor([1, 2, 3, 4]), convcore.tensor([0, 2, last])
    bags = F.embedding_bag(rows, weight, offsets, mode=mode, include_last_offset=True)
    reduced = {"sum": [[6, 8], [14, 16]], "mean": [[3, 4], [7, 8]], "max": [[4, 5], [8, 9]]}
    assert bags.tolist() == reduced[mode]
    bags[1].sum().backward()
    shares = {"sum": [1, 1], "mean": [0.5, 0.5], "max": [0, 1]}
    assert weight.grad[:, 0].tolist() == [0, 0, 0, *shares[mode]]


@pytest.mark.parametrize(
    ("offsets", "message"),
    [([1], r"offsets\[0\] has to be 0"), ([0, 5], "can not be greater"), ([0, 2, 1], "not fall")],
)
def test_offsets_must_go_up_from_zero(offsets, message):
    with pytest.raises(RuntimeError, match=message):
        F.embedding_bag(convcore.tensor([1, 2]), convcore.ones(5, 3), convcore.tensor(offsets))


@pytest.mark.parametrize("options", [{"mode": "sum"}, {"mode": "max"}, {"padding_idx": 0}])
def test_a_bag_with_a_row_that_is_not_there_is_refused(torch, options):
    def called(lib, weight):
        return lib.nn.functional.embedding_bag(lib.tensor([[1, 5]]), weight, **options)

    same_error(torch, called, np.ones((5, 3), "float32"))


def test_sparse_gradients_are_refused():
    for function in (F.embedding, F.embedding_bag):
        with pytest.raises(NotImplementedError, match="sparse=True is not supported"):
            function(convcore.tensor([[1]]), convcore.ones(5, 3), sparse=True)


BAGS = [
    {"input": [[1, 4, 0], [4, 4, 2]]},
    {"input": [1, 4, 0, 4, 4, 2], "offsets": [0, 2, 2, 5]},
    {"input": [1, 4, 0, 4, 4, 2], "offsets": [0, 0, 6, 6]},
    {"input": [1, 4, 0, 4, 4, 2], "offsets": [0, 2, 6], "include_last_offset": True},
    {"input": [1, 4, 0, 4], "offsets": [0, 2, 3], "include_last_offset": True, "padding_idx": 2},
    {"input": [1, 4, 0, 4, 4, 2], "offsets": [0, 1, 3], "padding_idx": 4},
    {"input": [4, 4, 2], "offsets": [0, 2], "padding_idx": -1},
    {"input": [], "offsets": [0, 0]},
]


@pytest.mark.parametrize("bags", BAGS, ids=str)
@pytest.mark.parametrize("mode", ["sum", "mean", "max", "weighted", "frequency"])
def test_bags_agree_with_pytorch(torch, rng, bags, mode):
    factors = rng.normal(size=np.shape(bags["input"]))

    def function(lib, weight, *factors):
        options = {"mode": mode}
        if mode == "weighted":
            options = {"mode": "sum", "per_sample_weights": factors[0]}
        elif mode == "frequency":
            options = {"mode": "mean", "scale_grad_by_freq": True}
        given = {name: value for name, value in bags.items() if name != "input"}
        if "offsets" in given:
            given["offsets"] = lib.tensor(given["offsets"])
        rows = lib.tensor(bags["input"]).long()
        return lib.nn.functional.embedding_bag(rows, weight, **given, **options)

    given = (factors,) if mode == "weighted" else ()
    ours, theirs = (
        first_order(lib, function, table(rng_of(7)), *given) for lib in (convcore, torch)
    )
    for mine, right in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, right, rtol=1e-12, atol=1e-12)


def rng_of(seed):
    return np.random.default_rng(seed)


def first_order(lib, function, *arrays):
    leaves = [lib.from_numpy(array.copy()).requires_grad_() for array in arrays]
    out = function(lib, *leaves)
    grad = rng_of(3).normal(size=tuple(out.shape))
    out.backward(lib.from_numpy(grad))
    return [out.detach().numpy(), *(leaf.grad.numpy() for leaf in leaves)]


def test_bags_are_sums_means_and_maxima(rng):
    weight = table(rng)
    parts = [weight[[1, 4]], weight[[0, 4, 4]]]
    for mode, function in (("sum", np.sum), ("mean", np.mean), ("max", np.max)):
        out = F.embedding_bag(
            convcore.tensor([1, 4, 0, 4, 4]),
            convcore.from_numpy(weight),
            convcore.tensor([0, 2, 5]),
            mode=mode,
        )
        expected = [function(part, 0) for part in parts] + [np.zeros(3)]
        np.testing.assert_allclose(out.numpy(), expected, rtol=1e-13)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_have_gradients_that_gradcheck_finds(rng, mode):
    weight = convcore.from_numpy(table(rng)).requires_grad_()
    offsets = convcore.tensor([0, 2, 2])

    def function(weight):
        rows = convcore.tensor([1, 4, 0, 4, 3])
        return F.embedding_bag(rows, weight, offsets, mode=mode).pow(3)

    assert gradcheck(function, (weight,)) and gradgradcheck(function, (weight,))


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
