"""Average pooling, adaptive too: the oracle's means, and gradients that are their adjoints."""

import numpy as np
import pytest
from draws import is_channels_last, lay_out

from convcore import engine
from convcore.engine import reference
from convcore.engine.layers.pooling.avg_pooling import avg_pool_maps

# sizes, kernel, stride, padding, ceil_mode
POOLS = [
    ((9,), (3,), 2, 1, True),
    ((7, 8), (2, 3), (1, 2), (1, 0), False),
    ((20, 21), (3, 3), 2, 1, False),
    ((5, 6), (5, 6), 1, 0, False),
    ((3, 4, 5), (2, 2, 3), (2, 1, 2), 1, True),
]
ADAPTIVE = [((9,), (4,)), ((7, 8), (3, 8)), ((7, 8), (1, 1)), ((4, 3, 5), (6, 1, 2))]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "strided"])
@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize(("sizes", "kernel", "stride", "padding", "ceil"), POOLS)
def test_means_are_the_oracles(sizes, kernel, stride, padding, ceil, include, layout, dtype, rng):
    x = lay_out(rng.standard_normal((2, 3, *sizes)).astype(dtype), layout, rng)
    windows = reference.pool_windows(sizes, kernel, stride, padding, 1, ceil, include)
    for divisor in (None, 5):
        means = engine.avg_pool(x, kernel, stride, padding, ceil, include, divisor)
        exact = reference.mean_over(x, windows, divisor)
        bound = reference.mean_over(np.abs(x), windows, divisor)
        assert reference.error_in_eps(means, exact, bound, dtype) <= 4
        assert is_channels_last(means) == is_channels_last(x) or 1 in means.shape
        one = engine.avg_pool(x[0], kernel, stride, padding, ceil, include, divisor)
        assert reference.error_in_eps(one, exact[0], bound[0], dtype) <= 4


@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize(("sizes", "kernel", "stride", "padding", "ceil"), POOLS)
def test_the_gradient_is_the_adjoint(sizes, kernel, stride, padding, ceil, include, rng):
    steps = kernel, stride, padding, ceil, include
    x = rng.standard_normal((2, 3, *sizes))
    means = engine.avg_pool(x, *steps)
    grad = rng.standard_normal(means.shape)
    back = engine.avg_pool_grad(grad, sizes, *steps)
    assert back.shape == x.shape
    np.testing.assert_allclose((means * grad).sum(), (x * back).sum(), rtol=1e-11)
    windows = reference.pool_windows(sizes, kernel, stride, padding, 1, ceil, include)
    np.testing.assert_allclose(back, reference.mean_over_grad(grad, windows, sizes), atol=1e-14)


@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "strided"])
@pytest.mark.parametrize(("sizes", "outs"), ADAPTIVE)
def test_adaptive_means_and_their_gradient_are_the_oracles(sizes, outs, layout, rng):
    windows = reference.adaptive_windows(sizes, outs)
    x = lay_out(rng.standard_normal((2, 3, *sizes)), layout, rng)
    grad = lay_out(rng.standard_normal((2, 3, *outs)), layout, rng)
    np.testing.assert_allclose(
        engine.adaptive_avg_pool(x, outs), reference.mean_over(x, windows), atol=1e-14
    )
    exact = reference.mean_over_grad(grad, windows, sizes)
    np.testing.assert_allclose(engine.adaptive_avg_pool_grad(grad, sizes), exact, atol=1e-14)


def test_maps_kept_for_a_shape_give_the_same_bits_and_errors(rng):
    x = rng.standard_normal((2, 3, 9, 8)).astype("f4")
    steps = (3, 2), (2, 1), (1, 0), True, False, None
    means = engine.avg_pool(x, *steps)
    forward, adjoint = avg_pool_maps(x, *steps)
    assert forward(x).tobytes() == means.tobytes()
    assert forward(x[1]).tobytes() == means[1].tobytes()
    assert adjoint(means).tobytes() == engine.avg_pool_grad(means, (9, 8), *steps).tobytes()
    with pytest.raises(ValueError, match="Output size is too small"):
        avg_pool_maps(x[..., :1], (3, 2), (2, 1), (1, 0), False, True, None)


def test_an_empty_batch_has_empty_means():
    assert engine.avg_pool(np.zeros((0, 3, 8, 8)), 2).shape == (0, 3, 4, 4)
    assert engine.adaptive_avg_pool(np.zeros((2, 3, 8, 8)), (0, 3)).shape == (2, 3, 0, 3)
    assert (engine.adaptive_avg_pool_grad(np.zeros((2, 3, 0, 3)), (8, 8)) == 0).all()


def test_a_gradient_of_other_sizes_is_refused():
    with pytest.raises(ValueError, match=r"grad_output must have .*\[4, 4\], got \[4, 3\]"):
        engine.avg_pool_grad(np.zeros((1, 1, 4, 3)), (8, 8), 2)
