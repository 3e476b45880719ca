"""Images as the kernels take them: dense memory of either format, copied where it is neither."""

import numpy as np
import pytest
from draws import is_dense, lay_out

from convcore.engine.layers import images

SHAPES = [(2, 3, 4, 5), (2, 3, 4), (2, 3, 4, 5, 6)]


@pytest.mark.parametrize("shape", SHAPES)
def test_contiguous_images_are_planes_and_not_copied(shape, rng):
    x = rng.standard_normal(shape)
    assert images.dense(x)[0] is x
    assert images.dense(x)[1:] == (6, 0)


@pytest.mark.parametrize("shape", [s for s in SHAPES if len(s) > 3])
def test_channels_last_images_are_pixels_of_channels_and_not_copied(shape, rng):
    x = np.moveaxis(rng.standard_normal((shape[0], *shape[2:], shape[1])), -1, 1)
    dense, n, channels = images.dense(x)
    assert np.shares_memory(dense, x)
    assert dense.flags.c_contiguous
    assert (n, channels) == (2, 3)
    np.testing.assert_array_equal(np.moveaxis(dense, -1, 1), x)


@pytest.mark.parametrize("layout", ["permuted", "strided", "broadcast", "field", "offset"])
@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_in_neither_format_is_copied_in_order(shape, layout, rng):
    x = lay_out(rng.standard_normal(shape), layout, rng)
    dense, n, channels = images.dense(x)
    assert dense.flags.c_contiguous
    assert dense.flags.aligned
    assert n * max(channels, 1) == 6
    np.testing.assert_array_equal(np.moveaxis(dense, -1, 1) if channels else dense, x)


@pytest.mark.parametrize("channels_last", [False, True])
def test_an_array_is_given_in_the_format_asked_for(channels_last, rng):
    x = rng.standard_normal((2, 3, 4, 5))
    made = images.as_format(x, channels_last)
    np.testing.assert_array_equal(np.moveaxis(made, -1, 1) if channels_last else made, x)
    assert made.flags.c_contiguous
    assert np.shares_memory(made, x) != channels_last


@pytest.mark.parametrize("channels", [0, 3])
def test_new_images_share_their_dense_memory(channels):
    dense, y = images.empty(np.zeros((2, 3, 9, 9)), (4, 5), np.dtype("f4"), channels)
    assert y.shape == (2, 3, 4, 5)
    assert is_dense(y, channels > 0)
    dense[...] = 7
    assert (y == 7).all()


def test_images_larger_than_any_memory_are_a_memory_error():
    with pytest.raises(MemoryError):
        images.empty(np.zeros((1, 1, 1, 1)), (2**40, 2**40), np.dtype("f4"), 0)
