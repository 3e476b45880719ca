"""Checks of arrays: each error names the argument, what it was and what is allowed."""

import sys

import numpy as np
import pytest
from draws import DTYPES

from convcore.engine.geometry import Axis, Geometry
from convcore.engine.runtime import checks
from convcore.engine.runtime._plain import is_plain


@pytest.mark.parametrize("dtype", DTYPES)
def test_computing_dtypes_are_taken_in_native_order_alone(dtype):
    checks.check_dtype("x", np.dtype(dtype))
    with pytest.raises(TypeError, match=r"x must be an array of float32, .*got [<>]"):
        checks.check_dtype("x", np.dtype(dtype).newbyteorder())


@pytest.mark.parametrize("dtype", ["int64", "bool", "float16"])
def test_other_dtypes_are_refused_by_name(dtype):
    with pytest.raises(TypeError, match=rf"bias must be .*got {dtype}; convert it with .astype"):
        checks.check_dtype("bias", np.dtype(dtype))


def test_arrays_come_back_plain_and_uncopied():
    class Sub(np.ndarray):
        pass

    array = np.zeros(3)
    assert checks.checked_array("x", array) is array
    plain = checks.checked_array("x", array.view(Sub))
    assert type(plain) is np.ndarray
    assert np.shares_memory(plain, array)


@pytest.mark.parametrize("bad", [[1.0], None, np.float64(1), np.ma.masked_array([1.0])])
def test_what_is_no_array_is_named_with_its_type(bad):
    with pytest.raises(TypeError, match=f"x must be a numpy.ndarray, got {type(bad).__name__}"):
        checks.checked_array("x", bad)


def test_bias_is_one_number_a_channel_of_the_inputs_dtype():
    wide = np.arange(8.0)[::2]
    bias = checks.checked_bias(wide, np.dtype("f8"), 4)
    assert bias.flags.c_contiguous
    assert bias.tolist() == wide.tolist()
    with pytest.raises(TypeError, match=r"bias must have the dtype of input, float32, got float64"):
        checks.checked_bias(wide, np.dtype("f4"), 4)
    with pytest.raises(ValueError, match=r"shape \[5\], got shape \[4\]"):
        checks.checked_bias(wide, np.dtype("f8"), 5)


def test_the_common_dtype_has_one_itemsize_or_both_arrays_are_named():
    single, double = np.dtype("f4"), np.dtype("f8")
    assert checks.common_itemsize(("a", double), ("b", double)) == 8
    with pytest.raises(
        TypeError, match="a and b should be the same dtype, got float32 and float64"
    ):
        checks.common_itemsize(("a", single), ("b", double))
    with pytest.raises(TypeError, match="b must be an array of"):
        checks.common_itemsize(("a", single), ("b", np.dtype("i4")))


def test_only_elements_that_lie_across_their_size_are_copied(rng):
    record = np.zeros((4, 3), [("tag", "u1"), ("value", "f8")])
    record["value"] = rng.standard_normal((4, 3))
    whole = checks.whole_elements(record["value"])
    assert whole.flags.aligned
    assert all(s % 8 == 0 for s in whole.strides)
    np.testing.assert_array_equal(whole, record["value"])
    for array in (np.zeros((3, 4)), np.zeros((3, 4)).T, np.zeros((6, 4))[::-2, 1:]):
        assert checks.whole_elements(array) is array


def test_the_outputs_shape_is_checked_by_name():
    g = Geometry(2, 3, 4, 1, (Axis(5, 3),))
    checks.check_output("grad_output", (2, 4, 3), g)
    with pytest.raises(ValueError, match=r"grad_output must .* \[2, 4, 3\], got \[2, 4, 5\]"):
        checks.check_output("grad_output", (2, 4, 5), g)


def test_a_result_that_cannot_be_addressed_is_a_memory_error():
    checks.check_memory((sys.maxsize // 8,), 8)
    with pytest.raises(MemoryError, match="larger than any memory"):
        checks.check_memory((2**31, 2**31), 4)
    with pytest.raises(MemoryError, match="larger than any memory"):
        checks.check_memory((0, 2**31, 2**31), 4)  # NumPy makes no such array either


def test_nested_sequences_become_tuples_of_ints_and_long_ones_stay():
    assert checks.plain_parameter([1, (2, [3])]) == (1, (2, (3,)))
    found = checks.plain_parameter(np.array([1, 2]))
    assert found == (1, 2)
    assert is_plain(found)
    assert checks.plain_parameter("same") == "same"
    long = list(range(9))
    assert checks.plain_parameter(long) is long


@pytest.mark.parametrize("value", [1, "same", (1, 2), ((1, 0), (0, 1)), ()])
def test_ints_and_texts_and_tuples_of_them_are_plain(value):
    assert is_plain(value)
    assert checks.plain_parameter(value) == value


@pytest.mark.parametrize("value", [True, 1.0, None, [1], (True, 1), (1, 1.0), ((1, 0), (0, 1.0))])
def test_what_equals_an_int_is_not_plain_and_a_list_is_not(value):
    assert not is_plain(value)
    assert is_plain(checks.plain_parameter(value)) == (value == [1])
