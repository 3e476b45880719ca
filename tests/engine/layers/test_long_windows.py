"""Means of long windows: values and gradients near the exact ones, in little time and memory."""

import time
import tracemalloc

import numpy as np
import pytest

from convcore.engine.layers.pooling import avg_pooling
from convcore.engine.layers.pooling.long_windows import LongWindows, window_sums
from convcore.engine.runtime.layout import is_channels_last

CASES = {
    "a stride of 1": ((40,), 7, 1, 0, False, True, None),
    "pads that count": ((40,), 9, 2, 4, False, True, None),
    "pads that do not count": ((41,), 9, 3, 4, False, False, None),
    "ceil_mode": ((41,), 8, 3, 4, True, True, None),
    "a divisor": ((41,), 8, 3, 4, True, False, -3),
    "strides longer than windows": ((30,), 2, 5, 1, False, True, None),
    "two axes": ((12, 30), (3, 8), (2, 1), (1, 4), True, False, None),
    "three axes": ((5, 6, 14), (2, 3, 8), (1, 2, 3), (1, 0, 4), False, True, None),
}


@pytest.fixture
def all_long(monkeypatch):
    monkeypatch.setattr(avg_pooling, "_MAX_TAPS", 0)
    avg_pooling._regular.cache_clear()
    yield
    avg_pooling._regular.cache_clear()


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_values_and_gradients_are_those_of_tables(rng, monkeypatch, case, channels_last, dtype):
    sizes, *steps = case
    x = rng.standard_normal((2, *sizes, 3) if channels_last else (2, 3, *sizes)).astype(dtype)
    x = np.moveaxis(x, -1, 1) if channels_last else x
    forward, back = avg_pooling.avg_pool_maps(x, *steps)
    expected = forward(x)
    monkeypatch.setattr(avg_pooling, "_MAX_TAPS", 0)
    avg_pooling._regular.cache_clear()
    try:
        long_forward, long_back = avg_pooling.avg_pool_maps(x, *steps)
        assert isinstance(long_forward, LongWindows)
        found = long_forward(x)
        grads, long_grads = back(expected), long_back(expected)
        one = long_forward(x[0])
    finally:
        avg_pooling._regular.cache_clear()
    tolerance = 20 * float(np.finfo(dtype).eps)
    for a, b in ((found, expected), (long_grads, grads), (one, expected[0])):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(
            a.astype("f8"), b.astype("f8"), rtol=tolerance, atol=tolerance * np.abs(x).max()
        )
    assert is_channels_last(found.shape, found.strides) == is_channels_last(
        expected.shape, expected.strides
    )


@pytest.mark.usefixtures("all_long")
def test_what_is_not_finite_stays_in_its_windows():
    x = np.zeros((1, 1, 20))
    x[0, 0, [5, 12]] = np.nan, np.inf
    with np.errstate(all="raise"):
        found = avg_pooling.avg_pool(x, 4, 1)[0, 0]
    assert np.flatnonzero(np.isnan(found)).tolist() == [2, 3, 4, 5]
    assert np.flatnonzero(np.isinf(found)).tolist() == [9, 10, 11, 12]


@pytest.mark.parametrize("k", [1, 2, 3, 64, 1000, 4095, 4096])
def test_rounding_errors_grow_with_the_logarithm_of_the_window(rng, k):
    x = rng.random(10_000).astype(np.float32)
    exact = np.convolve(x.astype(np.float64), np.ones(k), "valid")
    found = window_sums(x, 0, 1, len(exact), k)
    bound = (2 * np.log2(k) + 2) * np.finfo(np.float32).eps / 2
    assert np.max(np.abs(found - exact) / exact) <= bound


def test_a_long_line_takes_neither_seconds_nor_tables():
    n = 300_000
    x = np.ones((1, 1, n), np.float32)
    tracemalloc.start()
    start = time.process_time()
    forward, back = avg_pooling.avg_pool_maps(x, n // 10, 1, n // 20, False, False, None)
    y = forward(x)
    grads = back(y)
    assert time.process_time() - start < 5
    assert tracemalloc.get_traced_memory()[1] < 12 * x.nbytes + (1 << 24)
    tracemalloc.stop()
    np.testing.assert_allclose(y, 1, rtol=1e-5)
    np.testing.assert_allclose(grads.sum(), y.size, rtol=1e-5)


@pytest.mark.parametrize("stride", [1, 3])
@pytest.mark.parametrize("first, k", [(-9, 4), (-5, 7), (-4, 30), (2, 4), (4, 2**40), (5, 3)])
@pytest.mark.parametrize("far", [0, 2**40])
def test_zeros_that_all_windows_begin_or_end_with_take_no_memory(first, k, stride, far):
    x = np.arange(1.0, 6)
    starts = first + stride * np.arange(4)
    sums = [x[max(start, 0) : max(start + k, 0)].sum() for start in starts.tolist()]
    if far and starts[-1] > 0:  # then a longer window would begin with elements
        far = 0
    found = window_sums(x, first - far, stride, 4, k + far)
    np.testing.assert_array_equal(found, sums)
