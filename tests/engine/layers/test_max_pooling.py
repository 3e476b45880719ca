"""Max pooling, adaptive too: the oracle's maxima and their taps, by which gradients go back."""

import tracemalloc

import numpy as np
import pytest
from draws import is_channels_last, lay_out

from convcore import engine
from convcore.engine import reference
from convcore.engine.layers.pooling import max_pooling
from convcore.engine.layers.pooling._max_pool import MOST_TAPS

# sizes, kernel, stride, padding, dilation, ceil_mode
POOLS = [
    ((9,), (3,), 2, 1, 1, True),
    ((7, 8), (2, 3), (1, 2), (1, 0), (2, 1), False),
    ((20, 21), (3, 3), 2, 1, 1, False),
    ((20, 21), (2, 2), 2, 0, 1, True),
    ((3, 4, 5), (2, 2, 3), (2, 1, 2), 1, 1, True),
]
ADAPTIVE = [((9,), (4,)), ((7, 8), (3, 8)), ((7, 8), (1, 1)), ((4, 3, 5), (6, 1, 2))]


def drawn(rng, sizes, dtype="float32", layout="contiguous"):
    """Draw numbers with many ties, and NaN, infinities and -0."""
    x = rng.integers(-3, 4, (2, 3, *sizes)).astype(dtype)
    special = rng.choice([np.nan, np.inf, -np.inf, -0.0], x.shape)
    return lay_out(np.where(rng.random(x.shape) < 0.1, special, x).astype(dtype), layout, rng)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "strided"])
@pytest.mark.parametrize("pool", POOLS)
def test_maxima_and_indices_are_the_oracles(pool, layout, dtype, rng):
    sizes, *steps = pool
    x = drawn(rng, sizes, dtype, layout)
    values, indices = engine.max_pool(x, *steps)
    exact = reference.max_over(x, reference.pool_windows(sizes, *steps))
    assert values.dtype == dtype
    assert indices.dtype == np.int64
    np.testing.assert_array_equal(values, exact[0])
    np.testing.assert_array_equal(indices, exact[1])
    assert is_channels_last(values) == is_channels_last(indices)
    one = engine.max_pool(x[0], *steps)
    np.testing.assert_array_equal(one[1], exact[1][0])


@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "strided"])
@pytest.mark.parametrize(("sizes", "outs"), ADAPTIVE)
def test_adaptive_maxima_and_indices_are_the_oracles(sizes, outs, layout, rng):
    x = drawn(rng, sizes, layout=layout)
    found = engine.adaptive_max_pool(x, outs)
    exact = reference.max_over(x, reference.adaptive_windows(sizes, outs))
    np.testing.assert_array_equal(found[0], exact[0])
    np.testing.assert_array_equal(found[1], exact[1])


@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
@pytest.mark.parametrize("pool", POOLS)
def test_taps_lead_back_to_the_indices_and_the_gradient(pool, layout, rng):
    sizes, kernel, *steps = pool
    per_axis = [(s,) * len(sizes) if isinstance(s, int) else s for s in steps[:3]]
    x = lay_out(rng.standard_normal((2, 3, *sizes)), layout, rng)
    found = max_pooling.max_pool_of(x, kernel, *per_axis, steps[3])
    maxima, taps = found.forward(x, True)
    values, indices = engine.max_pool(x, kernel, *steps)
    np.testing.assert_array_equal(maxima, values)
    np.testing.assert_array_equal(found.indices(taps), indices)
    assert taps.dtype == np.uint8
    grad = lay_out(rng.integers(-3, 4, values.shape).astype("f8"), layout, rng)
    back = found.gradient(grad, taps)
    np.testing.assert_array_equal(back, engine.scatter_pixels(grad, indices, sizes))
    one = found.gradient(grad[0], taps[0])
    np.testing.assert_array_equal(one, back[0])


def test_taps_are_left_out_where_no_gradient_is_asked_for(rng):
    x = rng.standard_normal((2, 3, 8, 8))
    steps = (2, 2), (2, 2), (0, 0), (1, 1), False
    values, taps = max_pooling.max_pool_of(x, *steps).forward(x, False)
    assert taps is None
    np.testing.assert_array_equal(values, engine.max_pool(x, *steps)[0])


def test_more_taps_than_a_byte_numbers_need_indices(rng):
    x = rng.standard_normal((1, 1, 30, 30))
    most = (3, MOST_TAPS // 3)
    steps = (1, 1), (0, 0), (1, 1), False
    wide = rng.standard_normal((1, 1, 3, 300))
    assert max_pooling.max_pool_of(wide, most, *steps) is not None
    assert max_pooling.max_pool_of(x, (16, 16), *steps) is None
    assert max_pooling.max_pool_of(wide.astype("i4"), most, *steps) is None
    assert max_pooling.adaptive_max_pool_of(x, (1, 1)) is None
    assert max_pooling.adaptive_max_pool_of(x, (0, 3)) is None


def test_bits_do_not_depend_on_the_number_of_threads(rng, threads):
    x = rng.standard_normal((4, 20, 60, 61)).astype("f4")
    found = set()
    for n in (1, 2, 7):
        threads(n)
        found.add(b"".join(a.tobytes() for a in engine.max_pool(x, 3, 2, 1)))
    assert len(found) == 1


@pytest.fixture
def short_pieces(monkeypatch):
    """Take long-axis pooling for any axis, in pieces of four windows."""
    monkeypatch.setattr(max_pooling, "MOST_BYTES", 0)
    monkeypatch.setattr(max_pooling, "_PIECE", 4)


# sizes, kernel, stride, padding, dilation, ceil_mode: the long axis first, in the middle and last
LONG_POOLS = [
    ((41,), (3,), (1,), (1,), (1,), False),
    ((40,), (2,), (2,), (0,), (1,), False),
    ((40,), (3,), (3,), (1,), (2,), True),
    ((43,), (2,), (5,), (0,), (1,), True),
    ((37, 5), (3, 2), (2, 1), (1, 1), (1, 2), True),
    ((5, 37), (2, 3), (1, 2), (0, 1), (2, 1), False),
    ((3, 23, 4), (2, 3, 2), (1, 2, 1), (1, 1, 0), (1, 1, 2), True),
]


@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
@pytest.mark.parametrize("pool", LONG_POOLS)
def test_pieces_of_a_long_axis_agree_with_the_oracle(pool, layout, rng, short_pieces):
    sizes, *steps = pool
    x = drawn(rng, sizes, layout=layout)
    found = max_pooling.max_pool_of(x, *steps)
    assert isinstance(found, max_pooling.LongMaxPool)
    exact = reference.max_over(x, reference.pool_windows(sizes, *steps))
    values, taps = found.forward(x, True)
    np.testing.assert_array_equal(values, exact[0])
    np.testing.assert_array_equal(found.indices(taps), exact[1])
    assert is_channels_last(values) == is_channels_last(x)
    assert found.forward(x, False)[1] is None
    grad = lay_out(rng.integers(-3, 4, values.shape).astype("f4"), layout, rng)
    back = found.gradient(grad, taps)
    np.testing.assert_array_equal(back, engine.scatter_pixels(grad, exact[1], sizes))
    np.testing.assert_array_equal(found.gradient(grad[0], taps[0]), back[0])
    np.testing.assert_array_equal(engine.max_pool(x, *steps)[1], exact[1])


def test_long_axes_take_little_memory_beside_their_arrays():
    x = np.zeros((1, 1, 1 << 22), "f4")
    found = max_pooling.max_pool_of(x, (2,), (2,), (0,), (1,), False)
    assert isinstance(found, max_pooling.LongMaxPool)
    tracemalloc.start()
    try:
        values, taps = found.forward(x, True)
        back = found.gradient(values, taps)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # Tables of the whole axis would take 8 * (3 / 2 + 2) bytes an element: 117 MB.
    assert peak < values.nbytes + taps.nbytes + back.nbytes + x.nbytes
