"""Expanded views, and their adjoint, the sum down to a smaller shape: the same as PyTorch's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from against_torch import agree, same_error
from elements import SEEDS
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

import convcore

SAME: dict[str, Callable] = {
    "expand": lambda lib, x: x.expand(3, 4),
    "expand-new-axes": lambda lib, x: x.expand(2, 5, 3, 4),
    "expand-kept": lambda lib, x: x.expand(2, -1, 4),
    "expand-sequence": lambda lib, x: x.expand([3, 4]),
    "expand-size": lambda lib, x: x.expand(lib.Size([3, 4])),
    "expand-to-nothing": lambda lib, x: x.expand(3, 0),
    "expand-0d": lambda lib, x: x[0, 0].expand(2, 3),
    "expand-twice": lambda lib, x: (x * 2).expand(3, 4).expand(2, 3, 4),
    "expand-as": lambda lib, x: x.expand_as(lib.zeros(2, 3, 4)),
    "broadcast-to": lambda lib, x: lib.broadcast_to(x, (3, 4)),
    "broadcast-tensors": lambda lib, x: lib.broadcast_tensors(x, lib.zeros(2, 1, 4), x[0]),
    "sum-to-size": lambda lib, x: x.expand(2, 3, 4).sum_to_size(3, 1),
    "sum-to-size-sequence": lambda lib, x: x.expand(2, 3, 4).sum_to_size((1, 3, 1)),
    "sum-to-its-own-size": lambda lib, x: x.sum_to_size(3, 1),
    "sum-to-a-number": lambda lib, x: x.sum_to_size(()),
}

ERRORS: dict[str, Callable] = {
    "expand-size": lambda lib, x: x.expand(2, 4),
    "expand-leading": lambda lib, x: x.expand(-1, 3, 4),
    "expand-as": lambda lib, x: x.expand_as(lib.zeros(4, 4)),
    "broadcast-to": lambda lib, x: lib.broadcast_to(x, (2, 2)),
    "broadcast-tensors": lambda lib, x: lib.broadcast_tensors(x, lib.zeros(2, 1)),
    "operands": lambda lib, x: x + lib.zeros(2, 4, 4),
}


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_broadcast_like_torch(torch, rng, seed, name, dtype):
    x = rng.normal(size=(3, 1)).astype(dtype)
    has_view = "sum" not in name
    strides = has_view and "nothing" not in name
    agree(torch, SAME[name], x, seed=seed, strides=strides, nodes=int(has_view))


@pytest.mark.parametrize("name", ERRORS)
def test_broadcast_errors_like_torch(torch, name):
    same_error(torch, ERRORS[name], np.zeros((3, 1)))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: x.expand(4), r"sizes provided \(1\) must be greater .* in the tensor \(2\)"),
        (lambda x: x[0, 0].expand(-1), r"size of the tensor \(-1\) isn't allowed in a leading"),
        (lambda x: x.sum_to_size(2, 1), r"size \[2, 1\] is not expandable to size \[3, 1\]"),
        (lambda x: x.sum_to_size(1, 3, 1), r"\[1, 3, 1\] is not expandable to size \[3, 1\]"),
    ],
)
def test_sizes_that_cannot_be_are_named(call, text):
    with pytest.raises(RuntimeError, match=text):
        call(convcore.zeros(3, 1))


@pytest.mark.parametrize("shapes", [((3, 1), (2, 1, 4)), ((), (5,)), (2, (3, 2)), ((0,), (1,)), ()])
def test_broadcast_shapes_are_pytorchs(torch, shapes):
    found = convcore.broadcast_shapes(*shapes)
    assert isinstance(found, convcore.Size)
    assert tuple(found) == tuple(torch.broadcast_shapes(*shapes))


def test_shapes_that_do_not_broadcast_name_their_first_axis_from_the_end():
    for shapes, text in (
        (((2, 3), (4, 3)), r"length 4 at -2! .* index 1 had \(4, 3\); .* to \[2, 3\]"),
        (((1, 3), (2, 1), (5, 4, 3)), r"length 4 at -2! .* index 2 .* to \[1, 2, 3\]"),
    ):
        with pytest.raises(RuntimeError, match=text):
            convcore.broadcast_shapes(*shapes)
    with pytest.raises(ValueError, match="a dimension with negative length"):
        convcore.broadcast_shapes((1, 2), -3)
    with pytest.raises(RuntimeError, match=r"should be of type ints, .* got 1\.5"):
        convcore.broadcast_shapes((1, 2), 1.5)


def test_an_expanded_tensor_is_a_view_that_shares_memory():
    x = convcore.zeros(3, 1)
    y = x.expand(3, 4)
    assert y._base is x and y.stride() == (1, 0)
    x.add_(1)
    assert y.tolist() == [[1] * 4] * 3
    x.expand(3, 1).add_(1)  # nothing is repeated, so it can be written to
    assert x.tolist() == [[2]] * 3
    with pytest.raises(RuntimeError, match="single memory location"):
        y.add_(1)


@examples(40)
@given(st.lists(st.integers(1, 4), max_size=4), st.data(), SEEDS)
def test_sum_to_size_is_the_adjoint_of_expand(shape, data, seed):
    """<expand(x), g> = <x, sum_to_size(g)>, for whole numbers to the last bit."""
    cut = data.draw(st.integers(0, len(shape)))
    small = tuple(data.draw(st.sampled_from((1, size))) for size in shape[cut:])
    rng = np.random.default_rng(seed)
    x, g = (convcore.from_numpy(np.asarray(rng.integers(-9, 9, s))) for s in (small, shape))
    assert (x.expand(shape) * g).sum().item() == (x * g.sum_to_size(small)).sum().item()


def test_operands_that_were_broadcast_and_promoted_get_their_own_shape_and_dtype_back():
    x = convcore.ones(3, 1, dtype=convcore.float32, requires_grad=True)
    y = convcore.ones(2, 1, 4, dtype=convcore.float64, requires_grad=True)
    (x * y).sum().backward()
    assert (x.grad.shape, x.grad.dtype) == ((3, 1), convcore.float32)
    assert (y.grad.shape, y.grad.dtype) == ((2, 1, 4), convcore.float64)
    assert x.grad.tolist() == [[8.0]] * 3


def test_a_real_operand_of_a_complex_one_gets_the_real_part():
    x = convcore.ones(2, requires_grad=True)
    (x * convcore.tensor([1 + 2j, 3 - 1j])).sum().backward(convcore.tensor(1 + 0j))
    assert x.grad.tolist() == [1, 3]


@pytest.mark.parametrize(
    ("shape", "sizes"), [((3,), (1, 3)), ((3,), (1, 1, 3)), ((1, 3), (2, 1, 3)), ((), (1, 2, 1))]
)
def test_new_axes_of_expand_have_pytorchs_strides(lib, shape, sizes):
    expected = {(1, 3): (3, 1), (1, 1, 3): (3, 3, 1), (2, 1, 3): (0, 3, 1), (1, 2, 1): (0, 0, 0)}
    assert lib.ones(shape).expand(sizes).stride() == expected[sizes]


def test_a_size_may_be_given_by_keyword(lib):
    x = lib.ones(3, 1)
    assert x.expand(size=(3, 2)).shape == x.expand(3, 2).shape == (3, 2)
    assert x.sum_to_size(size=(1, 1)).tolist() == [[3]]
    assert lib.ones(2).resize_(size=(1, 2)).shape == (1, 2)
    for call in (x.expand, x.sum_to_size, x.resize_):
        with pytest.raises(TypeError, match="missing 1 required positional argument"):
            call()
