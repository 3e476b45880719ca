"""Moments against NumPy's in float64, for every size and what is not finite."""

import numpy as np
import pytest

import convcore
from convcore.engine.layers.norm.moments import moments


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int32, bool])
@pytest.mark.parametrize("size", [1, 7, 16, 17, 4095, 4096, 4097, 50_001])
def test_moments_are_numpys(dtype, size):
    rng = np.random.default_rng(size)
    x = (rng.standard_normal(size) * 5 + 20).astype(dtype)
    x[rng.random(size) < 0.2] = 0
    found, wide = moments(x), x.astype(np.float64)
    eps = 1e-12 if dtype == np.float64 else 1e-5
    assert found.size == size and found.nan == 0
    assert found.mean == pytest.approx(wide.mean(), rel=eps)
    assert found.variance == pytest.approx(wide.var(), rel=eps, abs=1e-12)
    assert (found.least, found.largest) == (wide.min(), wide.max())
    assert found.zeros == np.count_nonzero(wide == 0)


def test_a_large_mean_does_not_hide_the_variance():
    x = np.random.default_rng(0).standard_normal(100_000) + 1e4
    assert moments(x.astype(np.float32)).variance == pytest.approx(x.var(), rel=1e-3)
    assert moments(x).variance == pytest.approx(x.var(), rel=1e-9)


@pytest.mark.parametrize("place", [0, 3, 20, 9_999])
def test_what_is_not_finite(place):
    x = np.ones(10_000, np.float32)
    x[place] = np.nan
    found = moments(x)
    assert found.nan == 1 and np.isnan([found.mean, found.least, found.largest]).all()
    x[place] = np.inf
    found = moments(x)
    assert found.nan == 0 and found.largest == np.inf and found.least == 1


def test_without_elements_and_in_other_orders():
    assert np.isnan(moments(np.empty((0, 3))).mean)
    x = np.random.default_rng(0).standard_normal((3, 40, 50))
    for view in (x.transpose(2, 0, 1), x[:, ::2, ::-1], np.broadcast_to(x[:1], x.shape)):
        assert moments(view).mean == pytest.approx(view.mean(), abs=1e-12)


def test_bits_do_not_depend_on_threads():
    x = np.random.default_rng(0).standard_normal(1_000_003).astype(np.float32)
    before = convcore.get_num_threads()
    try:
        found = set()
        for threads in (1, 2, 3):
            convcore.set_num_threads(threads)
            found.add(moments(x))
        assert len(found) == 1
    finally:
        convcore.set_num_threads(before)
