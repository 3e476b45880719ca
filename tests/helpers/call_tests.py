"""Tests of tables of calls: each function here returns a test of all rows of a table.

A call takes the library and tensors: ``lambda m, x, y: m.maximum(x, y)``.  A row of `PAIRS` is
(name, call, lowest and highest element, whether PyTorch has it for complex numbers).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest
from against_torch import agree, same_error
from edges import SPECIAL, agree_at_first_order, promoted_alike
from elements import COMPLEX, INTEGER, REAL, SEEDS, SHAPES, TOLERANCE, broadcast_pair
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

import convcore
from convcore.autograd import gradcheck, gradgradcheck

Calls = Mapping[str, Callable]


def _each_pair(rows: Sequence[tuple]) -> Callable:
    names = ("name", "call", "low", "high", "is_complex")
    return pytest.mark.parametrize(names, rows, ids=[row[0] for row in rows])


def _each(calls: Calls) -> Callable:
    return pytest.mark.parametrize("call", calls.values(), ids=calls.keys())


def pairs_agree(rows: Sequence[tuple]) -> Callable:
    """Compare values, gradients and nodes of calls of two drawn tensors with PyTorch's."""

    @_each_pair(rows)
    @examples(6)
    @given(st.data(), SHAPES, SEEDS)
    def test(torch, name, call, low, high, is_complex, data, shape, seed):
        dtype = data.draw(st.sampled_from(REAL + COMPLEX * is_complex))
        x, y = broadcast_pair(np.random.default_rng(seed), shape, dtype, low, high)
        agree(torch, call, x, y, seed=seed, nodes=1, rtol=TOLERANCE[dtype])

    return test


def pairs_have_gradients(rows: Sequence[tuple]) -> Callable:
    """Compare first and second gradients of calls of two tensors with finite differences."""

    @_each_pair(rows)
    def test(rng, name, call, low, high, is_complex):
        for dtype in ["float64"] + ["complex128"] * is_complex:
            arrays = broadcast_pair(rng, (2, 2), dtype, low, high)
            tensors = tuple(convcore.from_numpy(a).requires_grad_() for a in arrays)
            function = lambda x, y: call(convcore, x, y)  # noqa: E731
            if function(*tensors).requires_grad:
                assert gradcheck(function, tensors)
                assert gradgradcheck(function, tensors)

    return test


def pairs_keep_channels_last(rows: Sequence[tuple]) -> Callable:
    """Check that calls of two tensors keep the memory format."""

    def test(rng):
        array = np.ascontiguousarray(rng.uniform(0.3, 0.9, (2, 4, 5, 3))).transpose(0, 3, 1, 2)
        x, y = convcore.from_numpy(array).requires_grad_(), convcore.from_numpy(array + 1)
        for name, call, *_ in rows:
            assert call(convcore, x, y).stride() == x.stride(), name

    return test


def special_pairs_agree(calls: Calls) -> Callable:
    """Compare values and gradients at all pairs of special values."""

    @_each(calls)
    def test(torch, call):
        x, y = (a.reshape(-1) for a in np.meshgrid(SPECIAL, SPECIAL))
        agree_at_first_order(torch, call, x, y)

    return test


def dtypes_agree(calls: Calls) -> Callable:
    """Compare results of operands of every two dtypes, and their dtypes."""

    @_each(calls)
    @pytest.mark.parametrize("dtype", [*INTEGER, "bool", *REAL])
    def test(torch, call, dtype):
        promoted_alike(torch, call, dtype)

    return test


def in_place_agrees(calls: Calls) -> Callable:
    """Compare gradients of calls that change a tensor in place, which count as one version."""

    @_each(calls)
    def test(torch, rng, call):
        def function(m, x):
            y = x * 1
            assert call(m, y) is y
            assert y._version == 1
            return y

        agree(torch, function, rng.uniform(0.3, 0.9, (2, 3)), nodes=2)

    return test


def in_place_keeps_memory(calls: Calls) -> Callable:
    """Check that calls in place write into the memory that views show."""

    @_each(calls)
    def test(torch, rng, call):
        array = rng.uniform(0.3, 0.9, (2, 3))
        ours, theirs = convcore.from_numpy(array.copy()), torch.from_numpy(array.copy())
        view, address = ours[0], ours.data_ptr()
        call(convcore, ours)
        np.testing.assert_allclose(ours.numpy(), call(torch, theirs).numpy(), rtol=1e-12)
        assert ours.data_ptr() == address
        assert convcore.equal(view, ours[0])

    return test


def errors_agree(calls: Calls) -> Callable:
    """Compare the errors of calls of the library alone, and their texts, with PyTorch's."""

    @_each(calls)
    def test(torch, call):
        same_error(torch, call)

    return test
