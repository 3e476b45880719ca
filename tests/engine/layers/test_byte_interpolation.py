"""Images of bytes in other sizes: near those of floats, exact where nothing is rounded."""

import numpy as np
import pytest

from convcore import engine
from convcore.engine.layers.interpolation.byte_interpolation import interpolate_bytes

SIZES = ((7, 9), (3, 2), (8, 30), (13, 11), (20, 11))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("align", [False, True])
def test_bytes_are_the_rounded_floats_within_a_step(rng, size, mode, antialias, align):
    x = rng.integers(70, 186, (2, 3, 13, 11), dtype=np.uint8)  # cubics stay within bytes
    how = (mode, align, None, antialias)
    wide = engine.interpolate(x.astype(np.float64), size, *how)
    found = interpolate_bytes(x, size, *how)
    assert found.dtype == np.uint8
    assert np.abs(wide - found).max() <= 1.5


def test_constant_images_and_the_same_size_stay_as_they_are(rng):
    x = rng.integers(0, 256, (1, 2, 5, 4), dtype=np.uint8)
    same = interpolate_bytes(x, (5, 4), "linear")
    assert np.array_equal(same, x) and not np.shares_memory(same, x)
    for value in (0, 1, 254, 255):
        flat = np.full((1, 1, 5, 4), value, np.uint8)
        for mode in ("linear", "cubic"):
            assert (interpolate_bytes(flat, (3, 9), mode) == value).all()


def test_the_mean_of_two_pixels_is_rounded_up():
    x = np.array([[[[10, 13]]]], np.uint8)
    assert interpolate_bytes(x, (1, 1), "linear").item() == 12
