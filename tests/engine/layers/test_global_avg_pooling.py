"""Global average pooling: the mean of every plane."""

import numpy as np
import pytest
from draws import is_channels_last, lay_out

from convcore.engine.layers.pooling.global_avg_pooling import global_avg_pool, write_global_avg_pool


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "permuted", "strided"])
@pytest.mark.parametrize("shape", [(2, 5, 7, 9), (3, 17, 1, 1), (1, 4, 11), (2, 3, 4, 5, 6)])
def test_each_mean_is_of_a_plane(shape, layout, dtype, rng):
    x = lay_out((1 + rng.random(shape)).astype(dtype), layout, rng)
    means = global_avg_pool(x)
    exact = x.astype("f8").mean(tuple(range(2, x.ndim)), keepdims=True)
    assert means.dtype == dtype
    np.testing.assert_allclose(means, exact, rtol=8 * np.finfo(dtype).eps)
    if is_channels_last(x):
        assert np.moveaxis(means, 1, -1).flags.c_contiguous


@pytest.mark.parametrize("channels_last", [False, True])
def test_means_are_written_to_memory_that_is_given(channels_last, rng):
    x = rng.standard_normal((2, 6, 5, 4))
    if channels_last:
        x = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
    means = np.full(12, np.nan)
    write_global_avg_pool(x, means)
    np.testing.assert_allclose(means, x.mean((2, 3)).ravel(), rtol=1e-13)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_means_can_be_written_later_and_again(dtype, rng):
    x, means = np.zeros((2, 6, 5, 4), dtype), np.full(12, np.nan, dtype)
    write = write_global_avg_pool(x, means, later=True)
    assert np.isnan(means).all()
    for _ in range(2):
        x[...] = rng.standard_normal(x.shape)
        write()
        np.testing.assert_array_equal(means, global_avg_pool(x).ravel())


def test_sums_of_one_sign_keep_their_digits(rng):
    x = (1 + rng.random((1, 2, 1000, 1000))).astype("f4")
    exact = x.astype("f8").mean((2, 3), keepdims=True)
    np.testing.assert_allclose(global_avg_pool(x), exact, rtol=1e-6)
