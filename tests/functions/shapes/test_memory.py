"""set_, resize_, storages, element functions in Python, and answers about other devices."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree, same_error

import convcore


@pytest.mark.parametrize(
    "shape", [(2, 3, 2, 2), (2, 1, 3, 2), (1, 2, 3, 1, 2), (24,), (0, 3, 2, 2)]
)
@pytest.mark.parametrize(
    "name", ["channels_last", "channels_last_3d", "contiguous_format", "preserve_format"]
)
def test_resize_takes_a_memory_format(torch, shape, name):
    def told(lib, function):
        try:
            x = function(lib, lib.arange(24.0), getattr(lib, name))
            return x.stride(), x.tolist()
        except RuntimeError:
            return None

    template = lambda m: m.zeros(2, 2, 3, 2).contiguous(memory_format=m.channels_last)  # noqa: E731
    for function in (
        lambda m, x, how: x.resize_(shape, memory_format=how),
        lambda m, x, how: x[2:].resize_(shape, memory_format=how)[:0],
        lambda m, x, how: x.resize_as_(m.zeros(shape), memory_format=how),
        lambda m, x, how: x.resize_as_(template(m), memory_format=how),
        lambda m, x, how: template(m).resize_(2, 2, 3, 2, memory_format=how),
    ):
        assert told(convcore, function) == told(torch, function)


def test_resize_keeps_the_elements_of_the_memory(torch):
    for m in (convcore, torch):
        x = m.arange(6)
        address = x.data_ptr()
        assert x.resize_(2, 2).tolist() == [[0, 1], [2, 3]]
        assert x.resize_((3, 2)).tolist() == [[0, 1], [2, 3], [4, 5]]
        assert x.data_ptr() == address
        assert x.resize_(8)[:6].tolist() == list(range(6))
        assert x.resize_as_(m.zeros(1, 2)).tolist() == [[0, 1]]
        assert m.arange(4)[2:].resize_(1).tolist() == [2]
    same_error(torch, lambda m, x: x.resize_(1), np.ones(2))


@pytest.mark.parametrize("sizes", [(2**31, 2**31), (0, 4, 2**62)])
def test_more_memory_than_there_can_be_is_refused(lib, sizes):
    with pytest.raises(RuntimeError, match="calculation overflowed"):
        lib.ones(2).resize_(sizes)


def test_set_shares_the_memory(torch):
    for m in (convcore, torch):
        x, y = m.arange(6.0), m.zeros(1)
        assert y.set_(x) is y
        y[0] = 9
        assert x[0] == 9
        y.set_(x, 1, (2, 2), (2, 1))
        assert y.tolist() == [[1, 2], [3, 4]]
        y.set_(x.untyped_storage(), 2, (2,))
        assert y.tolist() == [2, 3]
        assert y.set_().shape == (0,)
        with pytest.raises(RuntimeError):
            m.zeros(1).set_(m.zeros(1, dtype=m.int64))


@pytest.mark.filterwarnings("ignore:TypedStorage")
def test_views_have_the_storage_of_their_base(torch):
    for m in (convcore, torch):
        x = m.arange(6, dtype=m.int32).reshape(2, 3)
        view = x[1:, ::2]
        assert view.untyped_storage().data_ptr() == x.data_ptr()
        assert view.untyped_storage().nbytes() == 24
        assert view.storage().size() == 6
        assert x.layout is m.strided
        assert repr(x.layout) == "torch.strided"


def test_a_filled_diagonal_agrees_with_pytorch(torch, rng):
    x = rng.normal(size=(5, 2))
    agree(torch, lambda m, x: x.clone().fill_diagonal_(2), x)
    agree(torch, lambda m, x: x.clone().fill_diagonal_(2, wrap=True), x)
    agree(torch, lambda m, x: x.clone().fill_diagonal_(2), rng.normal(size=(3, 3, 3)))
    same_error(torch, lambda m, x: x.clone().fill_diagonal_(2), rng.normal(size=(3, 2, 3)))


def test_copies_and_pieces_by_other_names_agree_with_pytorch(torch, rng):
    x = rng.normal(size=(4, 3))
    agree(torch, lambda m, x: x.split_with_sizes([1, 3]), x)
    agree(torch, lambda m, x: x.new(2, 3).shape, x)
    agree(torch, lambda m, x: x.new([1, 2]), x)


def test_a_tensor_becomes_one_of_a_subclass():
    class Named(convcore.Tensor):
        pass

    x = convcore.ones(2, requires_grad=True)
    named = (x * 2).as_subclass(Named)
    assert type(named) is Named
    named.sum().backward()
    assert x.grad.tolist() == [2, 2]
    with pytest.raises(TypeError, match="does not inherit from Tensor"):
        x.as_subclass(int)


def test_packages_make_tensors_of_their_own_classes_as_with_pytorch(torch):
    for m in (convcore, torch):

        class Named(m.Tensor):
            pass

        x = m.ones(2, requires_grad=True)
        named = m.Tensor._make_subclass(Named, x * 3, True)
        assert type(named) is Named and named.is_leaf and named.requires_grad
        assert not Named._make_subclass(Named, x).requires_grad
        (named * 2).sum().backward()
        assert named.grad.tolist() == [2, 2] and x.grad is None
        y = m.zeros(2)
        m.Tensor._make_subclass(Named, y).add_(1)
        assert y.tolist() == [1, 1] and y._version == 1


@pytest.mark.parametrize("args", [(int,), (3,), (None, 3), (None, None, True)])
def test_what_no_tensor_of_a_class_can_be_made_of_is_refused_as_by_pytorch(torch, args):
    kinds = []
    for m in (convcore, torch):
        cls, data, *flag = (*args, None)[: max(len(args), 2)]
        data = m.tensor([1]) if data is None else data
        with pytest.raises((TypeError, RuntimeError)) as error:
            m.Tensor._make_subclass(m.Tensor if cls is None else cls, data, *flag)
        kinds.append((error.type, str(error.value).lower()))
    assert kinds[0] == kinds[1]


def test_answers_about_other_devices_and_layouts():
    x = convcore.ones(2)
    assert not any((x.is_xpu, x.is_mps, x.is_meta, x.is_quantized, x.is_nested, x.is_pinned()))
    assert x.pin_memory() is x is x.share_memory_() is x.to_dense()
    assert not convcore.is_inference(x)
    with pytest.raises(NotImplementedError, match="sparse"):
        x.to_sparse()


def test_strides_may_be_chosen(torch):
    for m in (convcore, torch):
        assert m.arange(6).as_strided_((2, 2), (3, 1)).tolist() == [[0, 1], [3, 4]]


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_a_storage_of_another_dtype_is_refused(torch):
    for m in (convcore, torch):
        with pytest.raises(RuntimeError, match=r"Expected a Storage of type .* got type Float"):
            m.zeros(2, dtype=m.int16).set_(m.ones(2).storage())


def test_a_memory_format_is_one(lib):
    x = lib.ones(2)
    for resize in (
        lambda how: x.resize_(3, memory_format=how),
        lambda how: x.resize_as_(x, memory_format=how),
    ):
        for wrong in ("channels_last", 1, {}):
            with pytest.raises(TypeError, match="argument 'memory_format' must be"):
                resize(wrong)
        resize(lib.contiguous_format)


def test_a_leaf_with_other_memory_has_another_accumulator(torch):
    for m in (convcore, torch):
        x, calls = m.ones(2, requires_grad=True), []
        before = (x * 2).sum()
        old = before.grad_fn.next_functions[0][0].next_functions[0][0]
        old.register_hook(lambda *_, calls=calls: calls.append("old"))
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
            x.set_(m.ones(3))
        with m.no_grad():
            x.set_(m.ones(3))
        after = x.sum()
        assert after.grad_fn.next_functions[0][0] is not old
        after.backward()
        assert x.grad.tolist() == [1, 1, 1] and calls == []
