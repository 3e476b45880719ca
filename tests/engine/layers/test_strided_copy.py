"""Boxes copied by the kernels, whatever their size, against NumPy's slices."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from draws import is_channels_last, is_dense, lay_out
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

import convcore
from convcore import engine
from convcore.engine.layers import strided_copy

pad = importlib.import_module("convcore.engine.layers.padding")  # whose name is the function's too

SOME = examples(150)


@pytest.fixture
def kernels(monkeypatch):
    """Have arrays of any size go to the kernels."""
    monkeypatch.setattr(strided_copy, "LEAST_BYTES", 0)


def plainly(target: np.ndarray, source: np.ndarray, before: list[int], value: float) -> None:
    """Do what `strided_copy.put` is for, element by element."""
    for place in np.ndindex(target.shape):
        at = tuple(j - b for j, b in zip(place, before, strict=True))
        inside = all(0 <= i < n for i, n in zip(at, source.shape, strict=True))
        target[place] = source[at] if inside else value


@SOME
@given(data=st.data())
def test_put_copies_what_lies_within(data, kernels, seed):
    rank = data.draw(st.integers(1, 5))
    shape = data.draw(st.tuples(*[st.integers(0, 4)] * rank))
    before = data.draw(st.lists(st.integers(-3, 3), min_size=rank, max_size=rank))
    more = data.draw(st.lists(st.integers(-4, 4), min_size=rank, max_size=rank))
    sizes = [max(n + m, 1) for n, m in zip(shape, more, strict=True)]
    dtype = data.draw(st.sampled_from(("f4", "f8", "u1", "i2", "c16", "?")))
    layout = data.draw(st.sampled_from(("contiguous", "channels_last", "permuted", "strided")))
    rng = np.random.default_rng(seed)
    source = rng.integers(0, 100, shape).astype(dtype)
    if rank > 2 and layout != "contiguous" and source.size and dtype in ("f4", "f8", "c16"):
        source = lay_out(source, layout, rng)
    target = np.full(sizes, 77, dtype)
    if rank > 2 and data.draw(st.booleans()):
        target = np.asfortranarray(target)
    value = data.draw(st.sampled_from((0, 3)))
    expected = np.empty_like(target)
    plainly(expected, source, before, value)
    if strided_copy.put(target, source, before, np.asarray(value, dtype)):
        np.testing.assert_array_equal(target, expected)
    else:  # the axis that runs fastest has gaps
        assert layout in ("permuted", "strided", "channels_last") or target.flags.f_contiguous


@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_pads_by_kernels_are_those_by_slices(layout, mode, rank, rng, monkeypatch, threads):
    x = lay_out(rng.integers(-4, 5, (2, 3, *(6, 5, 20)[-rank:])).astype("f4"), layout, rng)
    for pairs in ([(1, 2), (0, 3), (4, 1)][-rank:], [(-1, 2), (2, -2), (-3, 0)][-rank:]):
        with monkeypatch.context() as patch:
            patch.setattr(pad, "_border_map", lambda *args: None)
            y = engine.pad(x, pairs, mode, 0)
            g = lay_out(rng.integers(-4, 5, y.shape).astype("f4"), layout, rng)
            gx = engine.pad_grad(g, pairs, mode)
        with monkeypatch.context() as patch:
            patch.setattr(strided_copy, "LEAST_BYTES", 0)
            for n in (1, 2, 3, 7):
                threads(n)
                found, grad = engine.pad(x, pairs, mode, 0), engine.pad_grad(g, pairs, mode)
                np.testing.assert_array_equal(found, y)
                np.testing.assert_array_equal(grad, gx)
                assert is_dense(found, is_channels_last(x)) and is_dense(grad, is_channels_last(g))


def test_a_pad_by_a_value_keeps_every_bit(kernels):
    x = np.array([[np.nan, -0.0, np.inf]], "f4")
    y = engine.pad(x, [(1, 0), (2, 1)], "constant", 2.5)
    assert y[0].tolist() == [2.5] * 6
    assert np.isnan(y[1, 2]) and np.signbit(y[1, 3]) and y[1, 4] == np.inf
    assert engine.pad(x, [(0, 0), (-1, 1)], "replicate")[0].tolist() == [0.0, np.inf, np.inf]


@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_cat_by_kernels_joins_in_the_format_of_its_parts(layout, axis, kernels, rng):
    shapes = [tuple(n + k * (a == axis) for a, n in enumerate((2, 3, 4, 5))) for k in (0, 2, 1)]
    parts = [lay_out(rng.standard_normal(shape).astype("f4"), layout, rng) for shape in shapes]
    joined = convcore.cat([convcore.from_numpy(np.array(p, order="K")) for p in parts], axis)
    np.testing.assert_array_equal(joined.numpy(), np.concatenate(parts, axis))
    assert is_dense(joined.numpy(), layout == "channels_last")
    mixed = [parts[0], lay_out(parts[1], "permuted", rng), parts[2].astype("f8")]
    out = convcore.cat([convcore.from_numpy(np.array(p, order="K")) for p in mixed], axis)
    np.testing.assert_array_equal(out.numpy(), np.concatenate(mixed, axis))
