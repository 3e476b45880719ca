"""Padded and packed sequences: values, gradients and errors, beside PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree, plain, same_error

import convcore
from convcore.nn.utils import rnn

LENGTHS = ([3, 3, 1], [4, 2, 1], [1, 1, 1])


def same_packed(ours, theirs):
    assert type(ours).__name__ == type(theirs).__name__ and ours._fields == theirs._fields
    for mine, right in zip(ours, theirs, strict=True):
        assert (mine is None) == (right is None)
        if right is not None:
            np.testing.assert_array_equal(plain(mine), plain(right))
            assert plain(mine).dtype == plain(right).dtype


@pytest.mark.parametrize("lengths", [*LENGTHS, [2, 4, 3]], ids=str)
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("rest", [(), (2,)])
def test_packing_and_padding_again_agree_with_pytorch(torch, rng, lengths, batch_first, rest):
    x = rng.normal(size=((3, 4) if batch_first else (4, 3)) + rest)
    for make in (list, lambda lengths: torch.tensor(lengths)):
        options = {"batch_first": batch_first, "enforce_sorted": False}
        theirs = torch.nn.utils.rnn.pack_padded_sequence(
            torch.from_numpy(x), make(lengths), **options
        )
        ours = rnn.pack_padded_sequence(convcore.from_numpy(x), lengths, **options)
        same_packed(ours, theirs)

    def function(lib, x):
        packed = lib.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first, False)
        unpacked = lib.nn.utils.rnn.pad_packed_sequence(packed, not batch_first, -2.0, 5)
        return packed.data, unpacked[0], unpacked[1]

    agree(torch, function, x)


def test_packed_rows_stand_step_by_step():
    packed = rnn.pack_sequence([convcore.tensor([1, 2, 3]), convcore.tensor([4, 5])])
    assert packed.data.tolist() == [1, 4, 2, 5, 3]
    assert packed.batch_sizes.tolist() == [2, 2, 1]
    assert packed.sorted_indices is None and packed.unsorted_indices is None
    assert [part.tolist() for part in rnn.unpack_sequence(packed)] == [[1, 2, 3], [4, 5]]


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("rest", [(), (2,)])
def test_padding_agrees_with_pytorch(torch, rng, batch_first, side, rest):
    parts = [rng.normal(size=(length, *rest)) for length in (2, 4, 1)]

    def function(lib, *parts):
        return lib.nn.utils.rnn.pad_sequence(parts, batch_first, 0.5, side)

    agree(torch, function, *parts)


def test_padding_keeps_the_dtype_and_a_tensor_is_a_list_of_its_rows():
    padded = rnn.pad_sequence([convcore.tensor([1]), convcore.tensor([2, 3])], True, -1)
    assert padded.dtype == convcore.int64 and padded.tolist() == [[1, -1], [2, 3]]
    assert rnn.pad_sequence(convcore.ones(2, 3)).shape == (3, 2)


@pytest.mark.parametrize("batch_first", [True, False])
def test_unpadding_takes_padding_away(batch_first):
    parts = [convcore.tensor([1, 2]), convcore.tensor([3])]
    padded = rnn.pad_sequence(parts, batch_first)
    found = rnn.unpad_sequence(padded, convcore.tensor([2, 1]), batch_first)
    assert [part.tolist() for part in found] == [[1, 2], [3]]


@pytest.mark.parametrize(
    "function",
    [
        lambda lib, r, x: r.pack_padded_sequence(x, [1, 2, 3]),
        lambda lib, r, x: r.pack_padded_sequence(x, [3, 2]),
        lambda lib, r, x: r.pack_padded_sequence(x, [3, 2, 0]),
        lambda lib, r, x: r.pack_padded_sequence(x, lib.tensor([[3, 2, 1]])),
        lambda lib, r, x: r.pad_packed_sequence(
            r.pack_padded_sequence(x, [3, 2, 1]), total_length=2
        ),
        lambda lib, r, x: r.pad_sequence(3),
        lambda lib, r, x: r.pad_sequence([]),
        lambda lib, r, x: r.pad_sequence([x], padding_side="x"),
        lambda lib, r, x: r.pack_padded_sequence(x[0], [3]),
        lambda lib, r, x: r.pack_sequence([x[:1], x]),
    ],
)
def test_errors_are_pytorchs(torch, function):
    same_error(torch, lambda lib, x: function(lib, lib.nn.utils.rnn, x), np.ones((4, 3)))


def test_a_length_longer_than_the_input_is_refused():
    with pytest.raises(RuntimeError, match="lengths of at most 4"):
        rnn.pack_padded_sequence(convcore.ones(4, 1), [5])


def test_inverting_permutations():
    assert rnn.invert_permutation(convcore.tensor([2, 0, 1])).tolist() == [1, 2, 0]
    assert rnn.invert_permutation(None) is None


def test_conversions_of_packed_sequences():
    packed = rnn.pack_sequence([convcore.ones(1), convcore.ones(2)], enforce_sorted=False)
    assert packed.to(convcore.float32) is packed and packed.cpu() is packed
    for name in ("double", "float", "half", "long", "int"):
        converted = getattr(packed, name)()
        assert isinstance(converted, rnn.PackedSequence)
        assert converted.data.dtype == getattr(convcore.ones(1), name)().dtype
        assert converted.unsorted_indices is packed.unsorted_indices
    assert not packed.is_cuda and not packed.is_pinned()
    with pytest.raises(RuntimeError):
        packed.cuda()
    again = rnn.PackedSequence((packed.data, packed.batch_sizes))
    assert again.batch_sizes is packed.batch_sizes and again.sorted_indices is None
    data, sizes, _, back = packed
    assert rnn.PackedSequence(data, sizes, convcore.tensor([1, 0]))[3].tolist() == back.tolist()


def test_what_is_empty_is_not_packed(lib):
    rnn = lib.nn.utils.rnn
    with pytest.raises(RuntimeError, match="Cannot pack empty tensors"):
        rnn.pack_padded_sequence(lib.ones(0, 0), [])
    empty = rnn.PackedSequence(lib.ones(0, 5), lib.tensor([], dtype=lib.int64), None, None)
    for unpack in (rnn.pad_packed_sequence, rnn.unpack_sequence):
        with pytest.raises(RuntimeError, match="batch_sizes can not be empty"):
            unpack(empty)


@pytest.mark.parametrize(
    ("name", "dtype"), [("short", "int16"), ("char", "int8"), ("byte", "uint8")]
)
def test_packed_sequences_are_converted_to_short_integers(lib, name, dtype):
    packed = lib.nn.utils.rnn.pack_sequence([lib.ones(3), lib.ones(2)])
    assert getattr(packed, name)().data.dtype is getattr(lib, dtype)
