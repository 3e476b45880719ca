"""Max pooling by NumPy: the same maxima and indices as the compiled loops, and of integers."""

import numpy as np
import pytest
from draws import is_channels_last, is_dense, lay_out

from convcore import engine
from convcore.engine import reference
from convcore.engine.layers import windows
from convcore.engine.layers.pooling import max_pooling_numpy

# sizes, kernel, stride, padding, dilation, ceil_mode: the last two window by window
POOLS = [
    ((9,), (3,), 2, 1, 1, True),
    ((7, 8), (2, 3), (1, 2), (1, 0), (2, 1), False),
    ((3, 4, 5), (2, 2, 3), (2, 1, 2), 1, 1, True),
    ((6, 7), (5, 6), 1, 1, 1, False),
    ((4, 4), (2, 2), 4, 1, 3, False),
]
ADAPTIVE = [((9,), (4,)), ((7, 8), (3, 8)), ((7, 8), (1, 1)), ((4, 3, 5), (6, 1, 2))]


def drawn(rng, sizes, dtype, layout):
    """Draw numbers with many ties, and NaN among the floats."""
    x = rng.integers(0, 5, (2, 3, *sizes)).astype(dtype)
    if x.dtype.kind == "f":
        x[rng.random(x.shape) < 0.1] = np.nan
    return lay_out(x, layout, rng)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "strided"])
@pytest.mark.parametrize("pool", POOLS)
def test_results_are_those_of_the_compiled_loops(pool, layout, dtype, rng):
    sizes, kernel, *steps = pool
    x = drawn(rng, sizes, dtype, layout)
    axes = windows.pool_axes(3, sizes, kernel, *steps)
    found = max_pooling_numpy.max_pool_by_numpy(x, axes)
    compiled = engine.max_pool(x, kernel, *steps)
    for mine, theirs in zip(found, compiled, strict=True):
        np.testing.assert_array_equal(mine, theirs, strict=True)
        assert is_dense(mine, is_channels_last(x))


@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
@pytest.mark.parametrize(("sizes", "outs"), ADAPTIVE)
def test_adaptive_results_are_those_of_the_compiled_loops(sizes, outs, layout, rng):
    x = drawn(rng, sizes, "float32", layout)
    found = max_pooling_numpy.adaptive_max_pool_by_numpy(x, outs)
    for mine, theirs in zip(found, engine.adaptive_max_pool(x, outs), strict=True):
        np.testing.assert_array_equal(mine, theirs, strict=True)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "int64", "uint64"])
@pytest.mark.parametrize("pool", POOLS[:4])
def test_integers_are_exact_up_to_their_ends(pool, dtype, rng):
    sizes, *steps = pool
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, (2, 3, *sizes), dtype, endpoint=True)
    values, indices = engine.max_pool(x, *steps)
    assert values.dtype == dtype
    for output, pixels, _ in reference.pool_windows(sizes, *steps):
        window = np.stack([x[(..., *pixel)] for pixel in pixels])
        np.testing.assert_array_equal(values[(..., *output)], window.max(0))
    planes = x.reshape(2, 3, -1)
    taken = np.take_along_axis(planes, indices.reshape(2, 3, -1), 2).reshape(values.shape)
    np.testing.assert_array_equal(taken, values)


@pytest.mark.parametrize("dtype", ["float32", "int16"])
def test_a_window_of_padding_alone_has_the_lowest_number_and_no_index(dtype):
    x = np.full((1, 1, 1), 5, dtype)
    values, indices = max_pooling_numpy.max_pool_by_numpy(
        x, windows.pool_axes(1, (1,), (2,), 1, 1, 2)
    )
    assert indices.tolist() == [[[-1]]]
    assert values.item() == (-np.inf if dtype == "float32" else np.iinfo(dtype).min)


def test_windows_of_more_taps_than_a_byte_numbers_are_the_oracles(rng):
    x = rng.integers(0, 9, (1, 2, 20, 19)).astype("f4")
    found = engine.max_pool(x, (17, 16), 1)
    exact = reference.max_over(x, reference.pool_windows((20, 19), (17, 16), 1))
    np.testing.assert_array_equal(found[0], exact[0])
    np.testing.assert_array_equal(found[1], exact[1])


# sizes, kernel, stride, padding, dilation, ceil_mode
LONG_WINDOWS = [
    ((60,), (24,), 1, 0, 1, False),
    ((60,), (25,), 2, 12, 1, True),
    ((60,), (9,), 1, 10, 5, False),
    ((12, 11), (7, 6), 1, (3, 2), 1, False),
    ((12, 11), (7, 6), (2, 1), (3, 0), 1, True),
    ((7, 6, 5), (5, 5, 4), 1, 2, 1, False),
]


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8", "uint64"])
@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
@pytest.mark.parametrize("pool", LONG_WINDOWS)
def test_long_windows_by_doubling_agree_with_the_oracle(pool, layout, dtype, rng, monkeypatch):
    sizes, kernel, *steps = pool
    x = drawn(rng, sizes, dtype, layout)
    axes = windows.pool_axes(3, sizes, kernel, *steps)
    monkeypatch.setattr(max_pooling_numpy, "_doubling_pays", lambda axes: True)
    values, indices = max_pooling_numpy.max_pool_by_numpy(x, axes)
    exact = reference.max_over(x, reference.pool_windows(sizes, kernel, *steps))
    np.testing.assert_array_equal(values, exact[0])
    np.testing.assert_array_equal(indices, exact[1])
    assert values.dtype == dtype


@pytest.mark.parametrize("value", [-np.inf, np.nan])
def test_long_windows_of_one_value_have_the_indices_of_short_ones(value):
    x = np.full((1, 1, 50), value, "f4")
    axes = windows.pool_axes(3, (50,), (25,), 1, 12, 1, False)
    assert max_pooling_numpy._doubling_pays(axes)
    exact = reference.max_over(x, reference.pool_windows((50,), (25,), 1, 12, 1, False))
    _, indices = max_pooling_numpy.max_pool_by_numpy(x, axes)
    np.testing.assert_array_equal(indices, exact[1])


def test_integers_at_their_end_are_before_padding():
    x = np.full((1, 1, 50), -128, "i1")
    axes = windows.pool_axes(3, (50,), (25,), 1, 12, 1, False)
    _, indices = max_pooling_numpy.max_pool_by_numpy(x, axes)
    np.testing.assert_array_equal(indices[0, 0], np.maximum(np.arange(50) - 12, 0))
