"""Splits of tensors along an axis: the same as PyTorch's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from against_torch import agree, same_error

import convcore

SPLITS: dict[str, Callable] = {
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
    "tensor-split-indices": lambda lib, x, v: x.tensor_split(indices=(1, 3), dim=1),
    "tensor-split-sections": lambda lib, x, v: lib.tensor_split(x, sections=3),
    "unbind": lambda lib, x, v: x.unbind(),
    "unbind-1": lambda lib, x, v: lib.unbind(x, 1),
    "iterate": lambda lib, x, v: [row * n for n, row in enumerate(x)],
    "split-some": lambda lib, x, v: x.split(1)[2] * 2,
    "unbind-some": lambda lib, x, v: x.unbind(1)[2] * 2,
}

SPLIT_ERRORS: dict[str, Callable] = {
    "split-zero": lambda lib, x: x.split(0),
    "split-negative": lambda lib, x: x.split(-1),
    "split-sum": lambda lib, x: x.split([1, 1]),
    "split-sizes-negative": lambda lib, x: x.split([4, -1]),
    "split-0d": lambda lib, x: x[0, 0].split(1),
    "chunk-zero": lambda lib, x: x.chunk(0),
    "chunk-0d": lambda lib, x: x[0, 0].chunk(1),
    "tensor-split-zero": lambda lib, x: x.tensor_split(0),
    "tensor-split-float": lambda lib, x: x.tensor_split(lib.tensor(1.5)),
    "tensor-split-matrix": lambda lib, x: x.tensor_split(lib.tensor([[1]])),
    "unbind-dim": lambda lib, x: x.unbind(3),
    "unbind-0d": lambda lib, x: x[0, 0].unbind(),
    "iterate-0d": lambda lib, x: iter(x[0, 0]),
}


@pytest.mark.parametrize("name", SPLITS)
def test_splits_like_torch(torch, rng, seed, name):
    x, v = rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
    agree(torch, SPLITS[name], x, v, seed=seed, nodes=2)


@pytest.mark.parametrize("name", SPLIT_ERRORS)
def test_split_errors_like_torch(torch, name):
    same_error(torch, SPLIT_ERRORS[name], np.zeros((3, 4)))


@pytest.mark.parametrize("given", [{}, {"indices_or_sections": 2, "sections": 2}])
def test_tensor_split_takes_one_way_to_cut(given):
    with pytest.raises(TypeError, match="takes one of indices_or_sections, indices, sections"):
        convcore.ones(4).tensor_split(**given)


def test_splits_of_nothing_along_an_axis_like_torch(torch):
    for function in (
        lambda lib, x: x.split(0),
        lambda lib, x: x.chunk(2),
        lambda lib, x: x.unbind(1),
    ):
        agree(torch, function, np.zeros((0, 3)))
    assert convcore.zeros(0, 3).unbind() == ()


def test_parts_are_views_that_join_to_the_whole():
    x = convcore.arange(12.0).reshape(3, 4)
    for parts in (x.split(3, 1), x.chunk(2, 1), x.tensor_split((1, 3), 1)):
        assert convcore.equal(convcore.cat(parts, 1), x)
        parts[0].add_(1)
        assert parts[0][0, 0] == x[0, 0]
    assert convcore.equal(convcore.stack(x.unbind(1), 1), x)


@pytest.mark.parametrize("number", [2**31, 2**63, 2**70])
def test_endless_empty_pieces_are_an_error_at_once(number):
    x, empty = convcore.ones(3, 3, 3), convcore.ones(0, 0, 0)
    for call in (
        lambda: x.tensor_split(number),
        lambda: empty.tensor_split(number, 1),
        lambda: empty.chunk(number),
    ):
        with pytest.raises(RuntimeError, match="must be at most 6553"):
            call()
    assert len(convcore.ones(3).tensor_split(70)) == 70
    assert [len(one) for one in convcore.ones(3).split(number)] == [3]
