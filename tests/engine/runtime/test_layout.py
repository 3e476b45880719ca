"""Memory formats as strides tell them, and arrays that are matrices where they lie."""

import itertools

import numpy as np
import pytest
from draws import LAYOUTS, is_dense, lay_out
from draws import is_channels_last as suggested
from numpy.lib.stride_tricks import as_strided

from convcore.engine.runtime import layout

SHAPES = list(itertools.product((1, 2), (1, 3), (1, 4), (1, 5)))


def nhwc(shape):
    """Return a dense (N, C, *sizes) array whose channels run fastest."""
    return np.moveaxis(np.zeros((shape[0], *shape[2:], shape[1])), -1, 1)


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("shape", [*SHAPES, (2, 0, 3, 3), (2, 3, 4, 1, 2), (2, 3, 4), (3, 4)])
def test_format_is_the_one_that_pytorch_suggests(shape, name, rng):
    if name == "channels_last" and len(shape) < 3:
        pytest.skip("no axis to put before the channels")
    array = lay_out(np.zeros(shape), name, rng)
    assert layout.is_channels_last(array.shape, array.strides) == suggested(array)


@pytest.mark.parametrize("shape", SHAPES)
def test_where_both_formats_fit_an_array_is_contiguous(shape):
    """With one channel, or one pixel of one image, a contiguous array is in both."""
    assert not layout.is_channels_last(shape, np.zeros(shape).strides)
    n, c, *sizes = shape
    if c > 1 and n * sizes[0] * sizes[1] > 1:
        assert layout.is_channels_last(shape, nhwc(shape).strides)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 3, 4, 5), (2, 3, 4, 5, 6), (2, 0, 4, 5)])
def test_a_new_array_is_dense_in_the_format_asked_for(shape, channels_last):
    array = layout.empty(shape, np.dtype("f4"), channels_last)
    assert array.shape == shape
    assert array.dtype == np.float32
    assert is_dense(array, channels_last)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("shape", [(2, 3, 4, 5, 6), (1, 1, 2, 1, 3), (4, 2, 1, 1, 7)])
def test_dense_has_the_strides_of_a_new_array(shape, channels_last):
    made, array = (
        layout.dense(shape, channels_last),
        layout.empty(shape, np.dtype("f8"), channels_last),
    )
    for size, stride, n_bytes in zip(shape, made.strides, array.strides, strict=True):
        assert size == 1 or 8 * stride == n_bytes


def test_missing_axes_have_size_one_and_come_before_the_others():
    made = layout.layout((2, 3, 7), (168, 56, 8), 8)
    assert made == layout.Layout((2, 3, 1, 1, 7), (21, 7, 0, 0, 1))


def test_strides_of_split_elements_are_refused():
    with pytest.raises(layout.SplitElementsError, match=r"\[13, 4\] are not multiples of 4 bytes"):
        layout.layout((2, 3), (13, 4), 4)


@pytest.mark.parametrize("name", ["contiguous", "channels_last", "permuted", "strided"])
@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 3, 1, 1), (1, 4, 1, 6), (3, 1, 2, 2)])
def test_leading_dimensions_find_every_element_in_place(shape, name, rng):
    array = lay_out(rng.standard_normal(shape), name, rng)
    made = layout.layout(array.shape, array.strides, 8)
    pixels = array.transpose(0, 2, 3, 1).reshape(-1, shape[1])
    if made.dense_rows is not None:
        found = as_strided(array, pixels.shape, (8 * made.dense_rows, 8))
        np.testing.assert_array_equal(found, pixels)
    if made.dense_columns is not None:
        for image in array:
            planes = image.reshape(shape[1], -1)
            found = as_strided(image, planes.shape, (8 * made.dense_columns, 8))
            np.testing.assert_array_equal(found, planes)
    assert name != "channels_last" or made.dense_rows is not None
    assert name != "contiguous" or made.dense_columns is not None


def test_parts_of_a_complex_array_are_a_view():
    array = np.array([[1 + 2j, 3 + 4j], [5 + 6j, 7 + 8j]]).T
    parts = layout.real_parts(array)
    assert parts.tolist() == [[[1, 2], [5, 6]], [[3, 4], [7, 8]]]
    parts[0, 1, 1] = 9
    assert array[0, 1] == 5 + 9j
