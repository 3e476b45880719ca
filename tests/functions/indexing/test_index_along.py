"""Rows by their numbers along an axis: the same as PyTorch's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from against_torch import agree, same_error
from shapes import complex_or_real

import convcore

ALONG: dict[str, Callable] = {
    "index-select": lambda lib, x, v: x.index_select(1, lib.tensor([2, 0, 2])),
    "index-select-0d": lambda lib, x, v: lib.index_select(x, 0, lib.tensor(1)),
    "index-select-of-0d": lambda lib, x, v: x[0, 0].index_select(0, lib.tensor([0])),
    "index-select-int32": lambda lib, x, v: x.index_select(0, lib.tensor([2], dtype=lib.int32)),
    "index-add": lambda lib, x, v: x.index_add(0, lib.tensor([0, 0, 2]), v),
    "index-add-alpha": lambda lib, x, v: lib.index_add(x, 1, lib.tensor([1]), v[:, :1], alpha=3),
    "index-add-in-place": lambda lib, x, v: (x * 1).index_add_(0, lib.tensor([2, 0, 2]), v),
    "repeat-interleave": lambda lib, x, v: x.repeat_interleave(2, 0),
    "repeat-interleave-flat": lambda lib, x, v: lib.repeat_interleave(x, 3),
    "repeat-interleave-each": lambda lib, x, v: x.repeat_interleave(lib.tensor([1, 0, 2]), dim=0),
    "repeat-interleave-tensor": lambda lib, x, v: x.repeat_interleave(lib.tensor([2]), -1),
}


# PyTorch reads the elements of a vector by another node here.
OTHER_NODES = {"index-select-of-0d"}


ALONG_ERRORS: dict[str, Callable] = {
    "index-select-range": lambda lib, x: x.index_select(0, lib.tensor([3])),
    "index-select-negative": lambda lib, x: x.index_select(0, lib.tensor([-1])),
    "index-select-2d": lambda lib, x: x.index_select(0, lib.tensor([[0]])),
    "index-select-float": lambda lib, x: x.index_select(0, lib.tensor([0.0])),
    "index-select-dim": lambda lib, x: x.index_select(2, lib.tensor([0])),
    "index-add-count": lambda lib, x: x.index_add(0, lib.tensor([0]), x),
    "index-add-range": lambda lib, x: x.index_add(0, lib.tensor([3]), x[:1]),
    "index-add-dtype": lambda lib, x: x.index_add(0, lib.tensor([0]), x[:1].float()),
    "index-add-shape": lambda lib, x: x.index_add(0, lib.tensor([0]), x[:1, :2]),
    "repeats-count": lambda lib, x: x.repeat_interleave(lib.tensor([1, 2]), 0),
    "repeats-negative": lambda lib, x: x.repeat_interleave(-1),
}


@pytest.mark.parametrize("name", ALONG)
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_along_an_axis_like_torch(torch, rng, seed, name, dtype):
    x, v = (complex_or_real(rng, (3, 4), dtype) for _ in range(2))
    agree(torch, ALONG[name], x, v, seed=seed, nodes=0 if name in OTHER_NODES else 2)


@pytest.mark.parametrize("name", ALONG_ERRORS)
def test_along_an_axis_errors_like_torch(torch, name):
    same_error(torch, ALONG_ERRORS[name], np.linspace(-1, 1, 12).reshape(3, 4))


def test_repeats_are_one_axis_of_whole_numbers(torch):
    for function in (
        lambda lib, x: lib.repeat_interleave(x),
        lambda lib, x: lib.repeat_interleave(x[0], x[0]),
        lambda lib, x: lib.repeat_interleave(x[0].long() - 1),
    ):
        same_error(torch, function, np.zeros((2, 2)))


def test_unsigned_numbers_are_subtracted_by_index(torch):
    for m in (convcore, torch):
        found = m.zeros(2, dtype=m.uint8).index_add(0, m.arange(2), m.ones(2).byte(), alpha=-1)
        assert found.tolist() == [255, 255]
        with pytest.raises(RuntimeError, match="source tensor shape must match self tensor shape"):
            m.zeros(()).index_add(0, m.tensor([0]), m.ones(1, 1))


@pytest.mark.parametrize("wrong", [3, -1, "4", 4.0, True])
def test_another_output_size_than_that_of_the_repeats_is_refused(lib, wrong):
    x, each = lib.ones(2), lib.tensor([1, 3])
    for repeats in (2, each):
        with pytest.raises(
            (RuntimeError, TypeError), match=r"output_size|allocated size|negative dim"
        ):
            x.repeat_interleave(repeats, output_size=wrong)
    assert x.repeat_interleave(2, output_size=4).tolist() == [1] * 4
    assert lib.ones(3, 2).repeat_interleave(each, dim=1, output_size=4).shape == (3, 4)
    assert lib.repeat_interleave(each, output_size=4).tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize(("shape", "new"), [((), (1,)), ((1,), ())])
@pytest.mark.parametrize("name", ["index_add", "index_add_"])
def test_a_source_without_axes_is_for_a_tensor_without_axes(torch, name, shape, new):
    how = ("prod",) if "reduce" in name else ()

    def call(m, source):
        return getattr(m.ones(shape), name)(0, m.tensor([0]), m.ones(source), *how)

    same_error(torch, lambda m: call(m, new))
    assert call(convcore, shape).shape == shape
