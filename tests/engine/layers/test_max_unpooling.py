"""Gather and scatter of pixels: adjoint to each other, and errors for indices outside a plane."""

import numpy as np
import pytest
from draws import is_channels_last, lay_out

from convcore import engine

CASES = [((9,), (4,)), ((4, 5), (6, 2)), ((2, 3, 4), (3, 1, 5))]
INTEGERS = ("int8", "uint8", "int32", "int64", "uint64")


def drawn(rng, sizes, outs, layout="contiguous", dtype="int64", least=0):
    values = lay_out(rng.integers(-3, 4, (2, 3, *outs)).astype("f8"), layout, rng)
    return values, rng.integers(least, np.prod(sizes), values.shape).astype(dtype)


def by_loops(values, indices, sizes, place):
    """Return planes into which each value is put, or added, one after the other."""
    planes = np.zeros((*values.shape[:2], int(np.prod(sizes))))
    for n, c, *j in np.ndindex(values.shape):
        at = n, c, *j
        if indices[at] >= 0:
            old = 0 if place else planes[n, c, indices[at]]
            planes[n, c, indices[at]] = old + values[at]
    return planes.reshape(*values.shape[:2], *sizes)


@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "strided"])
@pytest.mark.parametrize(("sizes", "outs"), CASES)
def test_scatter_adds_each_value_at_its_index_and_leaves_minus_one_out(sizes, outs, layout, rng):
    values, indices = drawn(rng, sizes, outs, layout, least=-1)
    planes = engine.scatter_pixels(values, indices, sizes)
    np.testing.assert_array_equal(planes, by_loops(values, indices, sizes, False))
    assert is_channels_last(planes) == is_channels_last(values)
    one = engine.scatter_pixels(values[1], indices[1], sizes)
    np.testing.assert_array_equal(one, planes[1])


@pytest.mark.parametrize(("sizes", "outs"), CASES)
def test_of_values_placed_at_one_index_the_last_stays(sizes, outs, rng):
    values, indices = drawn(rng, sizes, outs)
    planes = engine.place_pixels(values, indices, sizes)
    np.testing.assert_array_equal(planes, by_loops(values, indices, sizes, True))


@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "strided"])
@pytest.mark.parametrize(("sizes", "outs"), CASES)
def test_gather_is_the_adjoint_of_scatter(sizes, outs, layout, rng):
    values, indices = drawn(rng, sizes, outs, least=-1)
    x = lay_out(rng.integers(-3, 4, (2, 3, *sizes)).astype("f8"), layout, rng)
    there = engine.gather_pixels(x, indices, rank=len(sizes))
    assert (there[indices < 0] == 0).all()
    back = engine.scatter_pixels(values, indices, sizes)
    assert (there * values).sum() == (x * back).sum()


@pytest.mark.parametrize("dtype", INTEGERS)
def test_indices_of_any_integers_reach_every_plane(dtype, rng):
    """Small and unsigned ones could not hold the places of all planes."""
    values, indices = drawn(rng, (11, 11), (5, 5), dtype=dtype)
    expected = by_loops(values, indices, (11, 11), False)
    np.testing.assert_array_equal(engine.scatter_pixels(values, indices, (11, 11)), expected)


def test_what_was_pooled_is_placed_back_where_it_was(rng):
    x = rng.standard_normal((2, 3, 8, 6))
    values, indices = engine.max_pool(x, 2)
    planes = engine.place_pixels(values, indices, (8, 6))
    np.testing.assert_array_equal(planes, np.where(planes != 0, x, 0))
    np.testing.assert_array_equal(engine.max_pool(np.where(planes != 0, x, -9), 2)[0], values)


@pytest.mark.parametrize("wrong", [20, -2, -1, 2**40])
def test_an_index_outside_its_plane_is_named(wrong):
    values, indices = np.ones((1, 1, 2, 2)), np.zeros((1, 1, 2, 2), int)
    indices[0, 0, 1, 0] = wrong
    words = rf"Found an invalid max index: {wrong} \(output volumes are of size 4x5\)"
    with pytest.raises(ValueError, match=words):
        engine.place_pixels(values, indices, (4, 5))
    if wrong != -1:
        with pytest.raises(ValueError, match=words):
            engine.scatter_pixels(values, indices, (4, 5))


def test_indices_are_integers_one_for_each_value():
    values = np.ones((1, 1, 2, 2))
    with pytest.raises(TypeError, match="indices must be an array of integers, got float64"):
        engine.scatter_pixels(values, values, (4, 5))
    with pytest.raises(TypeError, match=r"indices must be a numpy\.ndarray, got list"):
        engine.scatter_pixels(values, [0], (4, 5))
    with pytest.raises(
        ValueError, match=r"the shape of values, \[1, 1, 2, 2\], got \[1, 1, 2, 3\]"
    ):
        engine.scatter_pixels(values, np.zeros((1, 1, 2, 3), int), (4, 5))
