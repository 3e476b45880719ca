"""Views with strides of one's own, and shapes set in place, beside PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree, chain, same, same_error

import convcore

IN_PLACE = [
    ("unsqueeze_", lambda x: x.unsqueeze_(0)),
    ("unsqueeze_ last", lambda x: x.unsqueeze_(dim=-1)),
    ("squeeze_", lambda x: x.squeeze_()),
    ("squeeze_ one", lambda x: x.squeeze_(1)),
    ("squeeze_ several", lambda x: x.squeeze_((0, 1))),
    ("transpose_", lambda x: x.transpose_(0, 2)),
    ("swapaxes_", lambda x: x.swapaxes_(0, -1)),
    ("swapdims_", lambda x: x.swapdims_(0, -1)),
]


@pytest.mark.parametrize(("name", "call"), IN_PLACE, ids=[row[0] for row in IN_PLACE])
def test_shape_is_set_in_place_as_in_pytorch(torch, rng, seed, name, call):
    array = rng.normal(size=(2, 1, 3))

    def function(lib, x):
        y = x * 2
        assert call(y) is y
        return y

    agree(torch, function, array, seed=seed, strides=True)


def test_matrix_is_transposed_in_place_as_in_pytorch(torch, rng, seed):
    agree(torch, lambda m, x: (x * x).t_() * 3, rng.normal(size=(2, 3)), seed=seed, strides=True)


@pytest.mark.parametrize(("name", "call"), IN_PLACE, ids=[row[0] for row in IN_PLACE])
def test_memory_and_versions_stay_when_the_shape_is_set(torch, name, call):
    found = []
    for lib in (convcore, torch):
        x = lib.arange(6.0).reshape(2, 1, 3)
        alias, address, version = x.detach(), x.data_ptr(), x._version
        call(x)
        assert x.data_ptr() == address
        assert alias.shape == (2, 1, 3)
        x.fill_(7)
        assert alias[1, 0, 2].item() == 7
        found.append((tuple(x.shape), x.stride(), x._version - version, x.is_leaf, x.grad_fn))
    assert found[0] == found[1]


def test_view_whose_shape_is_set_stays_a_part_of_its_base(torch, rng):
    array = rng.normal(size=(3, 4))
    found = []
    for lib in (convcore, torch):
        leaf = lib.from_numpy(array.copy()).requires_grad_()
        base = leaf * 1
        part = base[1:]
        part.t_()
        part.mul_(lib.arange(8.0).reshape(4, 2))
        (base * base).sum().backward()
        found.append((part.detach(), base.detach(), leaf.grad))
    for ours, theirs in zip(*found, strict=True):
        same(ours, theirs, "result")


def test_views_of_a_tensor_whose_shape_is_set_keep_their_history(torch, rng):
    array = rng.normal(size=(3, 4))
    found = []
    for lib in (convcore, torch):
        leaf = lib.from_numpy(array.copy()).requires_grad_()
        base = leaf * 1
        part = base[1:]
        base.transpose_(0, 1)
        (part * part).sum().backward(retain_graph=True)
        part.mul_(2)
        (base**3).sum().backward()
        found.append((base.detach(), leaf.grad))
    for ours, theirs in zip(*found, strict=True):
        same(ours, theirs, "result")


def test_hooks_see_gradients_in_the_shape_of_their_time():
    shapes = []
    y = convcore.ones(2, 3, requires_grad=True) * 2
    y.register_hook(lambda grad: shapes.append(tuple(grad.shape)))
    y.retain_grad()
    y.unsqueeze_(0)
    y.register_hook(lambda grad: shapes.append(tuple(grad.shape)))
    y.sum().backward()
    assert shapes == [(1, 2, 3), (2, 3)]
    assert y.grad.shape == (1, 2, 3)
    assert chain(y) == ["UnsqueezeBackward0", "MulBackward0", "AccumulateGrad"]


@pytest.mark.parametrize(
    "call",
    [
        lambda m, x: x.unsqueeze_(0),
        lambda m, x: x[0].squeeze_(),
        lambda m, x: (x * 1).unsqueeze_(5),
        lambda m, x: (x * 1).transpose_(0, 3),
    ],
)
def test_shape_is_not_set_where_pytorch_refuses(torch, call):
    same_error(torch, call, np.ones((2, 3)))


SHAPES_OF_VIEWS = {
    "squeeze_": lambda v: v.squeeze_(),
    "unsqueeze_": lambda v: v.unsqueeze_(0),
    "t_": lambda v: v.t_(),
    "transpose_": lambda v: v.transpose_(0, 1),
}


@pytest.mark.parametrize("name", SHAPES_OF_VIEWS)
@pytest.mark.parametrize("written", [False, True])
def test_a_view_whose_shape_is_set_leaves_its_base(torch, name, written):
    found = []
    for lib in (convcore, torch):
        x, seen = lib.ones(3, 1, requires_grad=True), []
        base = x * 2
        view, used = base.view(3, 1), base * 5
        base.retain_grad()
        base.register_hook(lambda grad, seen=seen: seen.append(grad.ravel().tolist()))
        SHAPES_OF_VIEWS[name](view)
        nodes = chain(base, 1) + chain(view, 2)
        if written:
            view.mul_(3)
        (view.sum() + used.sum() + (base * base).sum()).backward()
        found.append((nodes, tuple(view.shape), view._version, view._base is base, seen))
        found[-1] += (base.grad.ravel().tolist(), x.grad.ravel().tolist())
    (ours, *values), (theirs, *expected) = found
    assert values == expected
    assert [name.rstrip("0123") for name in ours] == [name.rstrip("0123") for name in theirs]


def test_only_matrices_are_transposed_in_place():
    with pytest.raises(RuntimeError, match="2 dimensions, but self is 3D"):
        convcore.ones(1, 2, 3).t_()


def test_saved_tensor_whose_shape_is_set_is_noticed(torch):
    for lib in (convcore, torch):
        y = lib.ones(2, 3, requires_grad=True) * 2
        z = y * y
        y.unsqueeze_(0)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.sum().backward()


# as_strided


STRIDED = [
    ((2, 2), (1, 2), None),
    ((3, 3), (1, 1), None),
    ((2, 3, 2), (0, 2, 1), 4),
    ((), (), 3),
    ((0, 3), (1, 1), None),
    ((12,), (1,), 0),
]


@pytest.mark.parametrize(("size", "stride", "offset"), STRIDED)
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_as_strided_agrees_with_pytorch(torch, rng, seed, size, stride, offset, dtype):
    for array in (rng.normal(size=(3, 4)), np.asfortranarray(rng.normal(size=(3, 4)))):
        agree(
            torch,
            lambda m, x: m.as_strided(x, size, stride, offset),
            array.astype(dtype),
            seed=seed,
            strides=True,
            nodes=1,
        )


@pytest.mark.parametrize("offset", [0, 3, 4, 5, 2**40])
@pytest.mark.parametrize("size", [(0,), (2, 0), (0, 3)])
def test_as_strided_of_no_elements_may_lie_beyond_the_memory(torch, size, offset):
    array = np.ones(4, np.float32)
    agree(torch, lambda m, x: x.as_strided(size, size, offset), array)
    agree(torch, lambda m, x: m.as_strided(x.detach().clone()[1:], size, size, offset), array)


def test_as_strided_of_a_view_reads_the_memory_of_its_base(torch, rng):
    array = rng.normal(size=(3, 4))
    agree(torch, lambda m, x: (x * 1)[1:].as_strided((2, 3), (4, 1)), array, nodes=2)
    agree(torch, lambda m, x: x.detach()[:, ::2].as_strided((2, 3), (4, 1)), array)
    agree(torch, lambda m, x: x.detach()[1].as_strided((2,), (1,), 0), array)
    agree(torch, lambda m, x: x.detach().expand(2, 3, 4)[1].as_strided((2,), (4,), 1), array)


def test_as_strided_is_a_view_that_can_be_written_to(torch, rng, seed):
    def function(lib, x):
        base = x * 1
        base.as_strided((3,), (5,)).mul_(2)
        return base

    agree(torch, function, rng.normal(size=(3, 4)), seed=seed)
    y = convcore.zeros(2, 2)
    assert y.as_strided((2,), (3,))._base is y


@pytest.mark.parametrize(
    ("size", "stride", "offset"),
    [
        ((4, 4), (4, 1), None),
        ((2,), (-1,), None),
        ((2, 2), (1,), None),
        ((2,), (1,), -2),
        ((-2,), (1,), None),
        ((2,), (1,), 5),
    ],
)
def test_as_strided_refuses_with_the_words_of_pytorch(torch, size, stride, offset):
    same_error(torch, lambda m, x: x.as_strided(size, stride, offset), np.ones((2, 3)))


def test_as_strided_refuses_what_it_has_no_gradient_for(rng):
    x = convcore.ones(3, 4, requires_grad=True)
    for y, size, stride, offset in [
        (x[1], (2,), (1,), 0),
        (x[:, ::2], (2, 2), (4, 1), None),
        (x.expand(2, 3, 4), (2,), (1,), None),
    ]:
        with pytest.raises(RuntimeError, match="needs all elements that it sees"):
            y.as_strided(size, stride, offset)
