"""Subscripts, read and written, and the places of what is not zero: the same as PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from against_torch import agree, same, same_error, tensors
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from shapes import complex_or_real

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


def test_setitem_gives_leading_ones_their_gradient(torch):
    for lib in (torch, convcore):
        x = lib.zeros(4, 2)
        value = lib.ones(1, 3, 1, requires_grad=True)
        x[lib.tensor([0, 2, 3])] = value
        (x * lib.arange(8.0).view(4, 2)).sum().backward()
        assert value.grad.tolist() == [[[1], [9], [13]]]


def test_setitem_of_a_leaf_raises(torch):
    for key in (0, slice(None), [0], (0, 1), ...):

        def function(lib, x, key=key):
            x[key] = 1

        same_error(torch, function, np.zeros((2, 3)))


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


# The places of what is not zero


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
@examples(150)
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


def test_index_put_needs_an_index(lib):
    for accumulate in (True, False):
        with pytest.raises(RuntimeError):
            lib.ones(()).index_put([], lib.tensor([1.0]), accumulate)
    nowhere = (lib.tensor([], dtype=lib.int64),)
    assert lib.ones(2).index_put_(nowhere, lib.tensor([])).tolist() == [1.0, 1.0]


def test_one_mask_takes_values_with_leading_ones(torch):
    for shape in ((2, 3), ()):
        for lib in (convcore, torch):
            x = lib.zeros(shape)
            x[True] = lib.ones((1, 1, *shape))
            x[False] = 5
            assert bool((x == 1).all()), (lib, shape)


@pytest.mark.parametrize("shape", [(2, 3), (4, 1, 1)])
def test_one_mask_refuses_several_axes_of_values_like_torch(torch, shape):
    def put(lib):
        lib.zeros(3)[lib.arange(3) > 1] = lib.ones(shape)

    same_error(torch, put)


INDICES = {
    "places": lambda m: m.tensor([0, 1]),
    "a list": lambda m: [0, 1],
    "an axis further": lambda m: (slice(None), m.tensor([0, 1])),
    "places in both": lambda m: (m.tensor([0, 1]), m.tensor([0, 1])),
    "mask": lambda m: m.tensor([True, False]),
    "mask of all": lambda m: m.ones(2, 3, dtype=m.bool),
    "mask and place": lambda m: (m.tensor([True, False]), m.tensor([1])),
    "view": lambda m: 1,
}


@pytest.mark.parametrize("dtype", ["float64", "int64", "bool"])
@pytest.mark.parametrize("shape", [(), (1,)])
@pytest.mark.parametrize("name", INDICES)
def test_one_value_of_another_dtype_fills_a_mask_and_nothing_else(torch, name, shape, dtype):
    found = []
    for m in (convcore, torch):
        x = m.zeros(2, 3)
        try:
            x[INDICES[name](m)] = m.ones(shape, dtype=getattr(m, dtype))
        except RuntimeError as error:
            found.append(str(error)[:30])
        else:
            found.append(x.tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["index_put", "index_put_"])
def test_sums_at_places_are_of_one_dtype(torch, name):
    for m in (convcore, torch):
        with pytest.raises(RuntimeError, match="source and destination dtypes match"):
            getattr(m.zeros(2), name)((m.tensor([True, False]),), m.tensor(1), accumulate=True)


@pytest.mark.parametrize("shape", [(2, 1, 0), (2, 1, 1)])
def test_an_empty_mask_must_fit_too(shape):
    x, mask = convcore.zeros(shape), convcore.zeros(0, dtype=convcore.bool)
    with pytest.raises(IndexError, match=r"mask \[0\] at index 0 does not match"):
        x[mask]
    with pytest.raises(IndexError, match=r"mask \[0\] at index 0 does not match"):
        x[mask] = 0.25
    assert x[:, :, :0][..., mask].shape == (2, 1, 0)
