"""What max and average pooling share: checks that name the argument, results in the same format."""

import numpy as np
import pytest
from draws import is_dense

from convcore.engine.geometry import Axis
from convcore.engine.layers.pooling import pooling

X = np.zeros((2, 3, 5, 4), "f4")


@pytest.mark.parametrize("value", [True, False, np.True_])
def test_a_flag_is_a_bool(value):
    assert pooling.checked_flag("ceil_mode", value) is bool(value)


@pytest.mark.parametrize("value", [1, "yes", None])
def test_what_is_no_bool_is_named(value):
    with pytest.raises(TypeError, match="ceil_mode must be a bool, got"):
        pooling.checked_flag("ceil_mode", value)


def test_sizes_are_one_to_three_ints():
    assert pooling.checked_sizes("input_size", [3, np.int64(4)], 0) == (3, 4)
    with pytest.raises(TypeError, match="input_size must be a sequence of ints, got int 3"):
        pooling.checked_sizes("input_size", 3, 0)
    for wrong in ([], [1] * 4):
        with pytest.raises(ValueError, match="input_size must be one to three ints"):
            pooling.checked_sizes("input_size", wrong, 0)
    with pytest.raises(ValueError, match="input_size"):
        pooling.checked_sizes("input_size", [0], 1)


def test_a_missing_batch_axis_is_put_before_the_others():
    batch, unbatched, sizes = pooling.as_batch("input", X[0], "kernel_size", (2, 3), pooling.FLOATS)
    assert (batch.shape, unbatched, sizes) == ((1, 3, 5, 4), True, (2, 3))
    assert np.shares_memory(batch, X)
    batch, unbatched, sizes = pooling.as_batch("input", X, "kernel_size", 2, pooling.FLOATS)
    assert (batch is X or np.shares_memory(batch, X), unbatched, sizes) == (True, False, (2, 2))
    # Of three axes an int takes the first for the batch.
    assert pooling.as_batch("input", X[0], "kernel_size", 2, pooling.FLOATS)[1:] == (False, (2,))


@pytest.mark.parametrize(
    ("value", "size", "error", "words"),
    [
        ([[1.0]], 1, TypeError, "input must be a numpy.ndarray, got list"),
        (np.ma.masked_array(X), 1, TypeError, "got MaskedArray"),
        (X.astype("i4"), 1, TypeError, "input must be an array of float16, .*got int32"),
        (X.astype(">f4"), 1, TypeError, "got >f4"),
        (
            X[0, 0],
            (1, 1),
            ValueError,
            r"kernel_size tuple \(1, 1\) has, got input of size: \[5, 4\]",
        ),
        (X, (1,) * 4, ValueError, "one to three spatial axes"),
    ],
)
def test_what_is_no_batch_of_images_is_named(value, size, error, words):
    with pytest.raises(error, match=words):
        pooling.as_batch("input", value, "kernel_size", size, pooling.FLOATS)


def test_only_the_batch_may_be_empty():
    pooling.check_planes(X[:0], False)
    with pytest.raises(
        ValueError, match=r"optional 0 dim batch size for input, but got:\[2, 0, 5, 4\]"
    ):
        pooling.check_planes(X[:, :0], False)
    with pytest.raises(ValueError, match=r"input has sizes \[2, 3, 0, 4\] with dimension 2"):
        pooling.check_adaptive(X[:, :, :0], False, (1, 1))
    with pytest.raises(ValueError, match=r"greater than or equal to 0 but received \{1, -1\}"):
        pooling.check_adaptive(X, False, (1, -1))


@pytest.mark.parametrize("channels_last", [False, True])
def test_results_lie_as_the_batch_does(channels_last):
    batch = np.moveaxis(np.zeros((2, 5, 4, 3)), -1, 1) if channels_last else X
    made = pooling.empty_results(batch, (2, 3), np.dtype("f4"), np.dtype("i8"))
    assert [(a.dtype, a.shape) for a in made] == [("f4", (2, 3, 2, 3)), ("i8", (2, 3, 2, 3))]
    assert all(is_dense(a, channels_last) for a in made)


def test_windows_of_each_axis_are_counted_and_halves_widened():
    assert pooling.output_sizes([Axis(9, 3, 2), Axis(4, 1)]) == (4, 4)
    assert pooling.wide_enough(np.dtype("f2")) == np.float32
    for dtype in ("f4", "f8", "i2"):
        assert pooling.wide_enough(np.dtype(dtype)) == dtype
