"""Subscripts, indices, masks, joins and cuts: the same as PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from against_torch import agree, same, same_error, tensors
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import convcore

# The subscripts of a (3, 4, 5) tensor; `lib` makes the tensors in them.
SUBSCRIPTS: dict[str, Callable] = {
    "int": lambda lib: 1,
    "int-from-end": lambda lib: -1,
    "numpy-int": lambda lib: np.int64(2),
    "ints": lambda lib: (1, 2),
    "all-ints": lambda lib: (1, 2, 3),
    "slice": lambda lib: slice(1, 3),
    "slice-step": lambda lib: slice(None, None, 2),
    "slice-all": lambda lib: slice(None),
    "slice-from-end": lambda lib: (slice(None), slice(-3, -1)),
    "slice-empty": lambda lib: slice(2, 1),
    "slice-beyond": lambda lib: slice(-9, 99),
    "column": lambda lib: (slice(None), 1),
    "last-axis": lambda lib: (..., 0),
    "ellipsis": lambda lib: ...,
    "ellipsis-middle": lambda lib: (1, ..., 2),
    "ellipses": lambda lib: (..., ...),
    "empty-tuple": lambda lib: (),
    "all-slices": lambda lib: (slice(None), slice(None)),
    "none": lambda lib: None,
    "nones": lambda lib: (None, slice(None), None),
    "none-and-int": lambda lib: (0, None, slice(1, 3)),
    "none-at-end": lambda lib: (..., None),
    "0d-tensor": lambda lib: lib.tensor(2),
    "0d-tensor-of-int16": lambda lib: (slice(None), lib.tensor(1, dtype=lib.int16)),
    "list": lambda lib: [2, 0],
    "list-negative": lambda lib: [-1, 0],
    "list-twice": lambda lib: [1, 1, 2, 1],
    "list-empty": lambda lib: [],
    "list-of-bool": lambda lib: [True, False, True],
    "list-of-lists": lambda lib: [[0, 1], [2, 3]],
    "list-with-slice": lambda lib: [0, slice(1, 3)],
    "range": lambda lib: range(2),
    "ndarray": lambda lib: np.array([2, 1]),
    "tensor": lambda lib: lib.tensor([0, 2]),
    "tensor-of-int32": lambda lib: lib.tensor([0, 2], dtype=lib.int32),
    "tensor-2d": lambda lib: lib.tensor([[0, 2], [1, 1]]),
    "tensor-second": lambda lib: (slice(None), lib.tensor([3, 0, 3])),
    "tensor-last": lambda lib: (..., lib.tensor([3, 0])),
    "tensors": lambda lib: (lib.tensor([0, 1]), lib.tensor([2, 3])),
    "tensors-broadcast": lambda lib: (lib.tensor([[0], [1]]), lib.tensor([2, 3, 2])),
    "tensors-adjacent": lambda lib: (slice(None), [0, 1], [2, 3]),
    "tensors-apart": lambda lib: ([0, 1], slice(None), [2, 3]),
    "tensors-apart-by-none": lambda lib: (slice(None), [0, 1], None, [1, 2]),
    "int-and-tensor": lambda lib: (1, lib.tensor([2, 2])),
    "int-slice-tensor": lambda lib: (1, slice(1, 4), lib.tensor([2, 2])),
    "none-and-tensor": lambda lib: (None, lib.tensor([1])),
    "mask": lambda lib: lib.arange(60).reshape(3, 4, 5) % 3 == 0,
    "mask-first": lambda lib: lib.tensor([True, False, True]),
    "mask-two-axes": lambda lib: lib.arange(12).reshape(3, 4) % 5 == 0,
    "mask-then-slice": lambda lib: (lib.arange(12).reshape(3, 4) % 5 == 0, slice(1, 3)),
    "mask-then-int": lambda lib: (lib.arange(12).reshape(3, 4) % 5 == 0, 1),
    "mask-last": lambda lib: (..., lib.tensor([True, False, True, True, False])),
    "mask-and-tensor": lambda lib: (lib.tensor([True, False, True]), lib.tensor([2, 0])),
    "mask-none": lambda lib: lib.zeros(3, dtype=lib.bool),
    "true": lambda lib: True,
    "false": lambda lib: False,
    "true-inside": lambda lib: (slice(None), True, [1]),
    "0d-mask": lambda lib: lib.tensor(True),
}

BAD_SUBSCRIPTS: dict[str, Callable] = {
    "int": lambda lib: 3,
    "int-negative": lambda lib: -4,
    "int-second": lambda lib: (0, 4),
    "int-after-none": lambda lib: (None, 3),
    "int-after-ellipsis": lambda lib: (..., 7),
    "too-many": lambda lib: (0, 0, 0, 0),
    "slice-back": lambda lib: slice(None, None, -1),
    "slice-zero": lambda lib: slice(None, None, 0),
    "slice-float": lambda lib: slice(0, 1.5),
    "string": lambda lib: "a",
    "float": lambda lib: 0.5,
    "set": lambda lib: {1},
    "tensor-range": lambda lib: lib.tensor([5]),
    "tensor-range-negative": lambda lib: (0, lib.tensor([1, -5])),
    "0d-tensor-range": lambda lib: lib.tensor(3),
    "tensor-float": lambda lib: lib.tensor([0.5]),
    "0d-tensor-float": lambda lib: lib.tensor(0.0),
    "tensor-int16": lambda lib: lib.tensor([1], dtype=lib.int16),
    "mask-shape": lambda lib: lib.tensor([True]),
    "mask-shape-second": lambda lib: (slice(None), lib.tensor([True])),
    "mask-shape-inside": lambda lib: lib.zeros(3, 5, dtype=lib.bool),
    "mask-rank": lambda lib: lib.zeros(1, 1, 1, 1, dtype=lib.bool),
    "broadcast": lambda lib: ([0, 1], [0, 1, 2]),
}


def complex_or_real(rng: np.random.Generator, shape: tuple, dtype: str) -> np.ndarray:
    x = rng.normal(size=shape).astype(dtype)
    if x.dtype.kind == "c":
        x.imag = rng.normal(size=shape)
    return x


@pytest.mark.parametrize("name", SUBSCRIPTS)
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
def test_getitem_like_torch(torch, rng, seed, name, dtype):
    agree(
        torch,
        lambda lib, x: (x * 1)[SUBSCRIPTS[name](lib)],
        complex_or_real(rng, (3, 4, 5), dtype),
        seed=seed,
        nodes=4,
    )


@pytest.mark.parametrize("name", SUBSCRIPTS)
@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
def test_getitem_of_other_layouts_like_torch(torch, rng, seed, name):
    agree(
        torch,
        lambda lib, x: x.permute(2, 1, 0)[..., ::2][SUBSCRIPTS[name](lib)],
        rng.normal(size=(9, 4, 3)),
        seed=seed,
    )


@pytest.mark.parametrize("name", BAD_SUBSCRIPTS)
def test_getitem_errors_like_torch(torch, name):
    same_error(torch, lambda lib, x: x[BAD_SUBSCRIPTS[name](lib)], np.zeros((3, 4, 5)))


def test_getitem_of_a_0d_tensor_like_torch(torch):
    for key in (..., (), None, True, False):
        agree(torch, lambda lib, x, key=key: x[key], np.array(2.0))
    same_error(torch, lambda lib, x: x[0], np.array(2.0))
    same_error(torch, lambda lib, x: x[0, 0], np.array(2.0))
    same_error(torch, lambda lib, x: x[:], np.array(2.0))


def test_getitem_with_old_byte_masks_like_torch(torch):
    with pytest.warns(UserWarning, match="uint8"):
        agree(torch, lambda lib, x: x[lib.tensor([1, 0, 1], dtype=lib.uint8)], np.arange(3.0))


@pytest.mark.parametrize("name", SUBSCRIPTS)
@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
def test_getitem_is_a_view_where_torch_has_one(torch, name):
    part = torch.zeros(3, 4, 5)[SUBSCRIPTS[name](torch)]
    assert convcore.zeros(3, 4, 5)[SUBSCRIPTS[name](convcore)]._is_view() == part._is_view()


def test_getitem_keeps_channels_last(rng):
    x = convcore.from_numpy(rng.normal(size=(4, 3, 2, 2))).to(memory_format=convcore.channels_last)
    assert x[[1, 3]].is_contiguous(memory_format=convcore.channels_last)
    assert x[[1, 3]].tolist() == x.contiguous()[[1, 3]].tolist()


def test_getitem_saves_its_indices(torch):
    """An index tensor that changes afterwards is noticed."""
    for lib in (torch, convcore):
        x = lib.zeros(3, requires_grad=True)
        index = lib.tensor([0, 1])
        y = x[index].sum()
        index[0] = 2
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()


def test_gradients_of_repeated_indices_are_exact_and_the_same_each_time(rng):
    """Sums go in the order of the indices, so that no run differs from another."""
    index = convcore.from_numpy(rng.integers(0, 7, 1000))
    grad = convcore.from_numpy(rng.normal(size=(1000, 3)).astype("float32"))
    found = []
    for _ in range(3):
        x = convcore.zeros(7, 3, requires_grad=True)
        x[index].backward(grad)
        found.append(x.grad.numpy().tobytes())
    assert len(set(found)) == 1
    expected = np.zeros((7, 3))
    np.add.at(expected, index.numpy(), grad.numpy().astype("float64"))
    np.testing.assert_allclose(x.grad.numpy(), expected, atol=1e-3)


# Writing


def assign(key: Callable, value: Callable) -> Callable:
    """Return a function that assigns to a subscript of a computed tensor and goes on with it."""

    def function(lib: Any, x: Any, v: Any) -> Any:
        y = x * 2
        y[key(lib)] = value(lib, v)
        return y * y, y

    return function


VALUES: dict[str, Callable] = {
    "number": lambda lib, v: 3,
    "float": lambda lib, v: -1.5,
    "numpy": lambda lib, v: np.float64(2),
    "0d": lambda lib, v: v[0] * 2,
    "one": lambda lib, v: v[1:] * 2,
}

# Of several values for one place PyTorch gives the gradient to all, not to the one that stays.
REPEATED = {
    "int-and-tensor",
    "int-slice-tensor",
    "list-twice",
    "tensor-2d",
    "tensor-second",
    "tensors-broadcast",
}


@pytest.mark.parametrize("name", SUBSCRIPTS)
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
def test_setitem_like_torch(torch, rng, seed, name, value):
    if name in REPEATED and value in ("0d", "one"):
        return
    agree(
        torch,
        assign(SUBSCRIPTS[name], VALUES[value]),
        rng.normal(size=(3, 4, 5)),
        rng.normal(size=2),
        seed=seed,
    )


@pytest.mark.parametrize("name", sorted(SUBSCRIPTS.keys() - REPEATED))
@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
def test_setitem_of_a_whole_part_like_torch(torch, rng, seed, name):
    """The value has the shape of what the subscript names, and its own gradient."""
    x = rng.normal(size=(3, 4, 5))
    v = rng.normal(size=tuple(torch.from_numpy(x)[SUBSCRIPTS[name](torch)].shape))
    agree(torch, assign(SUBSCRIPTS[name], lambda lib, v: v * 3), x, v, seed=seed)


@pytest.mark.parametrize("name", BAD_SUBSCRIPTS)
def test_setitem_errors_like_torch(torch, name):
    def function(lib, x):
        y = x * 1
        y[BAD_SUBSCRIPTS[name](lib)] = 1

    same_error(torch, function, np.zeros((3, 4, 5)))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (lambda lib: 0, lambda lib: lib.zeros(3)),
        (lambda lib: 0, lambda lib: [1.0] * 5),
        (lambda lib: 0, lambda lib: None),
        (lambda lib: 0, lambda lib: "a"),
        (lambda lib: 0, lambda lib: 1j),
        (lambda lib: [0, 1], lambda lib: lib.zeros(3, dtype=lib.float64)),
        (lambda lib: [0, 1], lambda lib: lib.zeros(5, dtype=lib.float32)),
        (lambda lib: [0, 1], lambda lib: [1.0] * 5),
    ],
)
def test_setitem_value_errors_like_torch(torch, key, value):
    def function(lib, x):
        y = x * 1
        y[key(lib)] = value(lib)

    same_error(torch, function, np.zeros((3, 4, 5)))


def test_setitem_converts_and_strips_leading_ones_like_torch(torch):
    def function(lib, x):
        y = x * 1
        y[0] = lib.arange(4)
        y[1:] = lib.ones(1, 1, 2, 4, dtype=lib.float64)
        n = lib.zeros(3, dtype=lib.int64)
        n[0], n[1:] = 1.9, x[0, :2].double()
        b = lib.zeros(2, dtype=lib.bool)
        b[0] = 3
        return y, n, b

    agree(torch, function, np.linspace(-2, 2, 12, dtype="float32").reshape(3, 4))


def test_setitem_of_a_leaf_raises(torch):
    for key in (0, slice(None), [0], (0, 1), ...):

        def function(lib, x, key=key):
            x[key] = 1

        same_error(torch, function, np.zeros((2, 3)))


def test_setitem_gives_the_gradient_to_the_value_that_stays():
    """PyTorch gives all values at one place the gradient; only the last one has an effect."""
    v = convcore.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = convcore.zeros(3)
    y[[1, 0, 1]] = v
    assert y.tolist() == [2.0, 3.0, 0.0]
    (y * convcore.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert v.grad.tolist() == [0.0, 1.0, 10.0]


def test_index_put_like_torch(torch, rng, seed):
    x, v = rng.normal(size=(4, 5)), rng.normal(size=3)

    def index(lib):
        return (lib.tensor([0, 3, 2]), lib.tensor([1, 1, -1]))

    def twice(lib):
        return (lib.tensor([0, 3, 0]), lib.tensor([1, 1, 1]))

    for function in (
        lambda lib, x, v: x.index_put(index(lib), v),
        lambda lib, x, v: lib.index_put(x, index(lib), v, accumulate=True),
        lambda lib, x, v: lib.index_put(x, twice(lib), v, accumulate=True),
        lambda lib, x, v: (x * 1).index_put_(index(lib), v),
        lambda lib, x, v: (x * 1).index_put_(twice(lib), v, accumulate=True),
        lambda lib, x, v: x.index_put((lib.tensor([0, 0]),), v[0], accumulate=True),
        lambda lib, x, v: x.index_put((x > 0,), v[0]),
    ):
        agree(torch, function, x, v, seed=seed, nodes=1)
    same_error(
        torch, lambda lib, x: x.index_put((lib.tensor([0]),), lib.zeros(2, dtype=lib.float64)), x
    )
    same_error(
        torch, lambda lib, x: x.index_put((lib.tensor([0]),), lib.zeros(1, dtype=lib.float32)), x
    )


# Along one axis


def indices(lib: Any) -> Any:
    return lib.tensor([[0, 1, 1], [2, 0, 1]])


ALONG: dict[str, Callable] = {
    "index-select": lambda lib, x, v: x.index_select(1, lib.tensor([2, 0, 2])),
    "index-select-0d": lambda lib, x, v: lib.index_select(x, 0, lib.tensor(1)),
    "index-select-of-0d": lambda lib, x, v: x[0, 0].index_select(0, lib.tensor([0])),
    "index-select-int32": lambda lib, x, v: x.index_select(0, lib.tensor([2], dtype=lib.int32)),
    "gather": lambda lib, x, v: x.gather(1, indices(lib)),
    "gather-0": lambda lib, x, v: lib.gather(x, 0, indices(lib)),
    "gather-one": lambda lib, x, v: x.gather(-1, lib.tensor([[3]])),
    "gather-empty": lambda lib, x, v: x.gather(0, lib.zeros(0, 2, dtype=lib.int64)),
    "gather-vector": lambda lib, x, v: x[0].gather(0, lib.tensor([3, 3])),
    "gather-of-0d": lambda lib, x, v: x[0, 0].gather(0, lib.tensor(0)),
    "take-along-dim": lambda lib, x, v: lib.take_along_dim(x, lib.tensor([[1], [0], [2]]), 1),
    "take-along-dim-broadcast": lambda lib, x, v: x.take_along_dim(lib.tensor([[1, 2]]), 1),
    "take-along-flat": lambda lib, x, v: x.take_along_dim(lib.tensor([1, 7])),
    "take": lambda lib, x, v: lib.take(x, lib.tensor([[0, -1], [5, 0]])),
    "scatter": lambda lib, x, v: x.scatter(0, lib.tensor([[0, 1, 2, 0]]), v[1:2]),
    "scatter-1": lambda lib, x, v: lib.scatter(x, 1, lib.tensor([[0, 3], [2, 1]]), v[1:, 1:3]),
    "scatter-number": lambda lib, x, v: x.scatter(1, lib.tensor([[0], [3]]), 7.0),
    "scatter-value": lambda lib, x, v: x.scatter(1, lib.tensor([[0], [3]]), value=7),
    "scatter-in-place": lambda lib, x, v: (x * 1).scatter_(0, lib.tensor([[0, 1, 2, 0]]), v[:1]),
    "scatter-reduce-add": lambda lib, x, v: x.data.scatter(1, indices(lib), 2.0, reduce="add"),
    "scatter-add": lambda lib, x, v: x.scatter_add(1, indices(lib), v[:2, :3]),
    "scatter-add-0": lambda lib, x, v: lib.scatter_add(x, 0, indices(lib), v[:2, :3]),
    "scatter-add-in-place": lambda lib, x, v: (x * 1).scatter_add_(1, indices(lib), v[:2, :3]),
    "index-add": lambda lib, x, v: x.index_add(0, lib.tensor([0, 0, 2]), v),
    "index-add-alpha": lambda lib, x, v: lib.index_add(x, 1, lib.tensor([1]), v[:, :1], alpha=3),
    "index-add-in-place": lambda lib, x, v: (x * 1).index_add_(0, lib.tensor([2, 0, 2]), v),
    "index-copy": lambda lib, x, v: x.index_copy(0, lib.tensor([2, 0]), v[:2]),
    "index-copy-in-place": lambda lib, x, v: (x * 1).index_copy_(1, lib.tensor([3]), v[:, :1]),
    "index-fill": lambda lib, x, v: x.index_fill(1, lib.tensor([0, 2, 0]), 5),
    "index-fill-tensor": lambda lib, x, v: lib.index_fill(x, 0, lib.tensor([1, 1]), v[0, 0]),
    "index-fill-in-place": lambda lib, x, v: (x * 1).index_fill_(0, lib.tensor([-1]), 5.0),
    "masked-fill": lambda lib, x, v: x.masked_fill(x > 0, -1),
    "masked-fill-broadcast": lambda lib, x, v: x.masked_fill(lib.tensor([[True]] * 3), 2.5),
    "masked-fill-row": lambda lib, x, v: x[:1].masked_fill(v > 0, 2.5),
    "masked-fill-tensor": lambda lib, x, v: lib.masked_fill(x, v > 0, v[0, 0]),
    "masked-fill-in-place": lambda lib, x, v: (x * 1).masked_fill_(v > 0, 0),
    "masked-select": lambda lib, x, v: x.masked_select(v > 0),
    "masked-select-broadcast": lambda lib, x, v: lib.masked_select(x[:1], v > 0),
    "masked-scatter": lambda lib, x, v: x.masked_scatter(x > 0, v),
    "masked-scatter-in-place": lambda lib, x, v: (x * 1).masked_scatter_(v > 0, v),
    "repeat-interleave": lambda lib, x, v: x.repeat_interleave(2, 0),
    "repeat-interleave-flat": lambda lib, x, v: lib.repeat_interleave(x, 3),
    "repeat-interleave-each": lambda lib, x, v: x.repeat_interleave(lib.tensor([1, 0, 2]), dim=0),
    "repeat-interleave-tensor": lambda lib, x, v: x.repeat_interleave(lib.tensor([2]), -1),
}

# PyTorch reads a vector's elements or a batch's rows by other nodes here.
OTHER_NODES = {
    "index-select-of-0d",
    "gather-empty",
    "gather-of-0d",
    "masked-fill-row",
    "take",
    "take-along-flat",
    "scatter-reduce-add",
    "masked-select-broadcast",
}

ALONG_ERRORS: dict[str, Callable] = {
    "index-select-range": lambda lib, x: x.index_select(0, lib.tensor([3])),
    "index-select-negative": lambda lib, x: x.index_select(0, lib.tensor([-1])),
    "index-select-2d": lambda lib, x: x.index_select(0, lib.tensor([[0]])),
    "index-select-float": lambda lib, x: x.index_select(0, lib.tensor([0.0])),
    "index-select-dim": lambda lib, x: x.index_select(2, lib.tensor([0])),
    "gather-range": lambda lib, x: x.gather(0, lib.tensor([[3]])),
    "gather-rank": lambda lib, x: x.gather(0, lib.tensor([0])),
    "gather-size": lambda lib, x: x.gather(0, lib.tensor([[0] * 5])),
    "gather-float": lambda lib, x: x.gather(0, lib.tensor([[0.0]])),
    "scatter-range": lambda lib, x: x.scatter(0, lib.tensor([[-1]]), x),
    "scatter-size": lambda lib, x: x.scatter(0, lib.tensor([[0] * 5]), x),
    "scatter-dtype": lambda lib, x: x.scatter(0, lib.tensor([[0]]), x.float()),
    "scatter-reduce": lambda lib, x: x.detach().scatter(0, lib.tensor([[0]]), x, reduce="max"),
    "scatter-add-dtype": lambda lib, x: x.scatter_add(0, lib.tensor([[0]]), x.float()),
    "index-add-count": lambda lib, x: x.index_add(0, lib.tensor([0]), x),
    "index-add-range": lambda lib, x: x.index_add(0, lib.tensor([3]), x[:1]),
    "index-add-dtype": lambda lib, x: x.index_add(0, lib.tensor([0]), x[:1].float()),
    "index-add-shape": lambda lib, x: x.index_add(0, lib.tensor([0]), x[:1, :2]),
    "index-fill-range": lambda lib, x: x.index_fill(0, lib.tensor([3]), 1),
    "index-fill-vector": lambda lib, x: x.index_fill(0, lib.tensor([0]), lib.zeros(1)),
    "masked-fill-dtype": lambda lib, x: x.masked_fill(lib.zeros(4), 1),
    "masked-fill-vector": lambda lib, x: x.masked_fill(x > 0, lib.zeros(1)),
    "masked-fill-shape": lambda lib, x: x.masked_fill(lib.tensor([True, False]), 1),
    "masked-fill-complex": lambda lib, x: x.masked_fill(x > 0, 1j),
    "masked-select-dtype": lambda lib, x: x.masked_select(x),
    "masked-select-shape": lambda lib, x: x.masked_select(lib.tensor([True, False])),
    "take-range": lambda lib, x: x.take(lib.tensor([12])),
    "take-float": lambda lib, x: x.take(lib.tensor([0.0])),
    "repeats-count": lambda lib, x: x.repeat_interleave(lib.tensor([1, 2]), 0),
    "repeats-negative": lambda lib, x: x.repeat_interleave(-1),
}


@pytest.mark.parametrize("name", ALONG)
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_along_an_axis_like_torch(torch, rng, seed, name, dtype):
    if dtype == "complex64" and any(word in name for word in ("masked", "reduce")):
        pytest.skip("complex numbers have no order, or no such gradient in PyTorch")
    x, v = (complex_or_real(rng, (3, 4), dtype) for _ in range(2))
    agree(torch, ALONG[name], x, v, seed=seed, nodes=0 if name in OTHER_NODES else 2)


@pytest.mark.parametrize("name", ALONG_ERRORS)
def test_along_an_axis_errors_like_torch(torch, name):
    same_error(torch, ALONG_ERRORS[name], np.linspace(-1, 1, 12).reshape(3, 4))


def test_scatter_gives_the_gradient_to_the_element_that_stays():
    v = convcore.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = convcore.zeros(2).scatter(0, convcore.tensor([1, 0, 1]), v)
    assert y.tolist() == [2.0, 3.0]
    y.sum().backward()
    assert v.grad.tolist() == [0.0, 1.0, 1.0]


def test_scatter_multiply_like_torch(torch, rng):
    def function(lib, x):
        return x.detach().scatter(0, lib.tensor([[0, 0], [0, 1]]), x.detach(), reduce="multiply")

    agree(torch, function, rng.normal(size=(3, 4)))
    with pytest.raises(RuntimeError, match="no gradient"):
        function_with_grad = convcore.ones(2, requires_grad=True)
        function_with_grad.scatter(0, convcore.tensor([0]), 2.0, reduce="multiply")


@pytest.mark.parametrize("shape", [(3, 4), (5,), (), (2, 0)])
def test_nonzero_like_torch(torch, rng, shape):
    x = np.asarray(rng.integers(0, 2, shape))
    for function in (
        lambda lib, x: lib.nonzero(x),
        lambda lib, x: x.nonzero(as_tuple=True),
        lambda lib, x: x.bool().nonzero(),
        lambda lib, x: lib.argwhere(x),
        lambda lib, x: x.double().argwhere(),
    ):
        agree(torch, function, x)


# Joining and cutting

JOINS: dict[str, Callable] = {
    "cat": lambda lib, x, v: lib.cat([x, v]),
    "cat-1": lambda lib, x, v: lib.cat((x, v, x), dim=1),
    "cat-negative": lambda lib, x, v: lib.cat([x, v], -1),
    "cat-one": lambda lib, x, v: lib.cat([x]),
    "cat-empty-vector": lambda lib, x, v: lib.cat([lib.zeros(0), x, v]),
    "cat-promotes": lambda lib, x, v: lib.cat([x, v.float(), lib.ones(1, 4, dtype=lib.int64)]),
    "cat-bool": lambda lib, x, v: lib.cat([x > 0, lib.arange(8).reshape(2, 4)]),
    "concat": lambda lib, x, v: lib.concat([x, v]),
    "concatenate": lambda lib, x, v: lib.concatenate([x.t(), v.t()], 1),
    "stack": lambda lib, x, v: lib.stack([x, v]),
    "stack-1": lambda lib, x, v: lib.stack((x, v), 1),
    "stack-last": lambda lib, x, v: lib.stack((x, v), dim=-1),
    "stack-0d": lambda lib, x, v: lib.stack([x[0, 0], v[0, 0], x.sum()]),
    "stack-promotes": lambda lib, x, v: lib.stack([x.float(), v]),
    "hstack": lambda lib, x, v: lib.hstack([x, v]),
    "hstack-vectors": lambda lib, x, v: lib.hstack([x[0], v[0, 0]]),
    "vstack": lambda lib, x, v: lib.vstack([x, v[0]]),
    "dstack": lambda lib, x, v: lib.dstack([x, v]),
    "column-stack": lambda lib, x, v: lib.column_stack([x[:, 0], v]),
    "meshgrid": lambda lib, x, v: lib.meshgrid(x[0], v[0, :2], indexing="ij"),
    "meshgrid-xy": lambda lib, x, v: lib.meshgrid([x[0], v[0, :2]], indexing="xy"),
    "atleast-1d": lambda lib, x, v: lib.atleast_1d(x[0, 0], v),
    "atleast-2d": lambda lib, x, v: lib.atleast_2d(x[0]),
    "atleast-3d": lambda lib, x, v: lib.atleast_3d((x[0], v)),
    "split": lambda lib, x, v: x.split(2),
    "split-1": lambda lib, x, v: lib.split(x, 3, 1),
    "split-sizes": lambda lib, x, v: x.split([1, 0, 3], dim=1),
    "split-negative": lambda lib, x, v: x.split(1, -1),
    "chunk": lambda lib, x, v: x.chunk(2, 1),
    "chunk-many": lambda lib, x, v: lib.chunk(x, 9),
    "chunk-uneven": lambda lib, x, v: x.chunk(3, dim=1),
    "tensor-split": lambda lib, x, v: x.tensor_split(3, 1),
    "tensor-split-at": lambda lib, x, v: lib.tensor_split(x, (1, 3), dim=1),
    "tensor-split-tensor": lambda lib, x, v: x.tensor_split(lib.tensor([2, 9])),
    "hsplit": lambda lib, x, v: x.hsplit(2),
    "vsplit": lambda lib, x, v: lib.vsplit(x, [1]),
    "unbind": lambda lib, x, v: x.unbind(),
    "unbind-1": lambda lib, x, v: lib.unbind(x, 1),
    "iterate": lambda lib, x, v: [row * n for n, row in enumerate(x)],
    "split-some": lambda lib, x, v: x.split(1)[2] * 2,
    "unbind-some": lambda lib, x, v: x.unbind(1)[2] * 2,
}

JOIN_ERRORS: dict[str, Callable] = {
    "cat-nothing": lambda lib, x: lib.cat([]),
    "cat-rank": lambda lib, x: lib.cat([x, x[0]]),
    "cat-size": lambda lib, x: lib.cat([x, x[:, :2]]),
    "cat-dim": lambda lib, x: lib.cat([x, x], 2),
    "cat-0d": lambda lib, x: lib.cat([x[0, 0], x[0, 0]]),
    "cat-tensor": lambda lib, x: lib.cat(x),
    "cat-number": lambda lib, x: lib.cat([x, 1]),
    "stack-size": lambda lib, x: lib.stack([x, x[0]]),
    "stack-nothing": lambda lib, x: lib.stack([]),
    "stack-dim": lambda lib, x: lib.stack([x, x], 4),
    "split-zero": lambda lib, x: x.split(0),
    "split-negative": lambda lib, x: x.split(-1),
    "split-sum": lambda lib, x: x.split([1, 1]),
    "split-sizes-negative": lambda lib, x: x.split([4, -1]),
    "split-0d": lambda lib, x: x[0, 0].split(1),
    "chunk-zero": lambda lib, x: x.chunk(0),
    "chunk-0d": lambda lib, x: x[0, 0].chunk(1),
    "tensor-split-zero": lambda lib, x: x.tensor_split(0),
    "hsplit": lambda lib, x: x.hsplit(3),
    "unbind-dim": lambda lib, x: x.unbind(3),
    "unbind-0d": lambda lib, x: x[0, 0].unbind(),
    "iterate-0d": lambda lib, x: iter(x[0, 0]),
}


@pytest.mark.parametrize("name", JOINS)
def test_joins_and_cuts_like_torch(torch, rng, seed, name):
    x, v = rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
    agree(torch, JOINS[name], x, v, seed=seed, nodes=2)


@pytest.mark.parametrize("name", JOIN_ERRORS)
def test_join_and_cut_errors_like_torch(torch, name):
    same_error(torch, JOIN_ERRORS[name], np.zeros((3, 4)))


def test_cat_keeps_channels_last_where_all_have_it(torch, rng):
    x = rng.normal(size=(2, 3, 4, 5)).astype("float32")
    for join in ("cat", "stack"):
        for one in (True, False):

            def function(lib, x, join=join, one=one):
                y = x.to(memory_format=lib.channels_last)
                return getattr(lib, join)([y, y if one else x], 0)

            agree(torch, function, x, strides=True)


def test_joins_of_nothing_along_an_axis_like_torch(torch):
    x = np.zeros((0, 3))
    for function in (
        lambda lib, x: lib.cat([x, x]),
        lambda lib, x: x.split(0),
        lambda lib, x: x.chunk(2),
        lambda lib, x: x.unbind(1),
        lambda lib, x: lib.stack([x, x], 2),
    ):
        agree(torch, function, x)
    assert convcore.zeros(0, 3).unbind() == ()


# Any subscript


@st.composite
def keys(draw: st.DrawFn, shape: tuple[int, ...]) -> list:
    """Draw a subscript; tensors in it are ('tensor', nested list)."""
    key: list = []
    axis = 0
    wide = draw(st.sampled_from([1, 2, 3]))
    ellipsis = False
    while axis < len(shape):
        size = shape[axis]
        kind = draw(st.sampled_from(["int", "slice", "none", "...", "tensor", "mask", "stop"]))
        if kind == "stop":
            break
        if kind == "none":
            key.append(None)
            continue
        if kind == "...":
            if not ellipsis:
                key.append(...)
                ellipsis = True
                axis += draw(st.integers(0, len(shape) - axis))
            continue
        if kind == "int":
            key.append(draw(st.integers(-size, size - 1)))
        elif kind == "slice":
            bound = st.none() | st.integers(-size - 1, size + 1)
            key.append(slice(draw(bound), draw(bound), draw(st.sampled_from([None, 1, 2]))))
        elif kind == "tensor":
            line = draw(st.lists(st.integers(0, size - 1), min_size=wide, max_size=wide))
            column = draw(st.booleans())
            key.append(("tensor", [[n] for n in line] if column else line))
        else:
            chosen = np.zeros(size, bool)
            chosen[draw(st.permutations(range(size)))[: min(wide, size)]] = True
            key.append(("tensor", chosen.tolist()))
        axis += 1
    return key


@given(data=st.data())
@settings(
    max_examples=150,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_subscript_like_torch(torch, data):
    """Read, write a number, write a tensor, and add at a drawn subscript."""
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4), label="shape"))
    key = data.draw(keys(shape), label="key")
    rng = np.random.default_rng(len(key))
    x = rng.normal(size=shape)

    def subscript(lib: Any) -> tuple:
        return tuple([lib.tensor(item[1]) if isinstance(item, tuple) else item for item in key])

    def read(lib, x):
        return (x * 1)[subscript(lib)]

    try:
        part = read(torch, torch.from_numpy(x))
    except (IndexError, RuntimeError) as error:
        with pytest.raises(type(error)):
            read(convcore, convcore.from_numpy(x))
        return
    agree(torch, read, x, nodes=3)
    agree(torch, assign(subscript, lambda lib, v: 7), x, np.zeros(1))
    numbers = np.arange(x.size).reshape(shape)
    places = torch.from_numpy(numbers)[subscript(torch)].flatten().tolist()
    if len(set(places)) == len(places):  # else which value stays is nowhere said
        v = rng.normal(size=tuple(part.shape))
        agree(torch, assign(subscript, lambda lib, v: v * 2), x, v)


@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
def test_indices_of_many_kinds_add_up(torch, rng):
    """The adjoint of reading, for indices on any axes: against PyTorch's accumulate."""
    x = rng.normal(size=(3, 4, 5))
    ours, theirs = (tensors(lib, (x,))[0] for lib in (convcore, torch))
    for key in SUBSCRIPTS.values():
        ours.grad = theirs.grad = None
        for lib, leaf in ((convcore, ours), (torch, theirs)):
            part = leaf[key(lib)]
            (part * part).sum().backward()
        same(ours.grad, theirs.grad, "gradient")
