"""Bad arguments: every error names argument, value and what is allowed, and nothing crashes."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import numpy as np
import pytest
from draws import DTYPES
from fuzz import ALL, HUGE, PARAMETERS, VALID, F

from convcore import engine

ARRAYS = [
    (function, name)
    for function, arguments in VALID.items()
    for name, value in arguments.items()
    if isinstance(value, np.ndarray)
]
# Functions that only move elements take any dtype.
COMPUTING = [
    (function, name)
    for function, name in ARRAYS
    if function not in ("im2col_view", "zero_pad", "unpad", "dilate", "rotate180")
]
TAKING_INTEGERS = {"im2col", "unfold"}


def call(function, **changes):
    return getattr(engine, function)(**(VALID[function] | changes))


def message(function, error, **changes) -> str:
    """Return the text of the error that a call raises."""
    with pytest.raises(error) as caught:
        call(function, **changes)
    return str(caught.value)


@pytest.mark.parametrize("function", VALID)
def test_valid_arguments_are_valid(function):
    """Without this, every test below could pass for the wrong reason."""
    assert isinstance(call(function), np.ndarray)


def test_every_public_function_is_covered():
    functions = {
        name
        for name in engine.__all__
        if inspect.isfunction(getattr(engine, name)) and not name.startswith("_")
    }
    # Sizes and plans have tests of their own; conv_transpose is conv_transpose2d of any rank.
    others = {"make_geometry", "plan_conv", "conv_transpose", "empty_cache"}
    others |= {"set_num_threads", "get_num_threads", "set_cache_limit", "get_cache_limit"}
    others |= {"memory_stats", "reset_peak_memory_stats"}
    assert functions - others <= set(ALL)


# Arrays


@pytest.mark.parametrize("dtype", ["float16", "int32", "int64", "uint8", "bool", "object", "U3"])
@pytest.mark.parametrize(("function", "name"), COMPUTING)
def test_wrong_dtype_is_a_type_error(function, name, dtype):
    bad = np.zeros(VALID[function][name].shape, dtype)
    if function in TAKING_INTEGERS and bad.dtype.kind in "biu":
        assert call(function, **{name: bad}).dtype == bad.dtype
        return
    text = message(function, TypeError, **{name: bad})
    shown = {"input": ("input", "columns")}.get(name, (name,))
    assert any(word in text for word in shown)
    assert bad.dtype.name in text
    assert all(allowed in text for allowed in DTYPES)


@pytest.mark.parametrize(("function", "name"), COMPUTING)
def test_foreign_byte_order_and_long_double_are_type_errors(function, name):
    for dtype in (np.dtype("float64").newbyteorder(), np.dtype("longdouble")):
        if dtype == np.float64:
            continue
        bad = np.zeros(VALID[function][name].shape, dtype)
        assert all(allowed in message(function, TypeError, **{name: bad}) for allowed in DTYPES)


@pytest.mark.parametrize(
    "bad",
    [1.0, [[1.0]], "array", object(), None, memoryview(b"123")],
    ids=lambda bad: type(bad).__name__,
)
@pytest.mark.parametrize(("function", "name"), ARRAYS)
def test_what_is_no_array_is_a_type_error(function, name, bad):
    if bad is None and name == "bias":
        pytest.skip("no bias is a bias")
    text = message(function, TypeError, **{name: bad})
    assert name in text or (function == "fold" and "columns" in text)
    assert type(bad).__name__ in text
    assert "numpy.ndarray" in text


@pytest.mark.parametrize(("function", "name"), COMPUTING)
def test_masked_arrays_are_type_errors(function, name):
    bad = np.ma.masked_array(VALID[function][name])
    assert "MaskedArray" in message(function, TypeError, **{name: bad})


@pytest.mark.parametrize(
    ("function", "name"),
    [pair for pair in COMPUTING if len([a for f, a in COMPUTING if f == pair[0]]) > 1],
)
def test_mixed_dtypes_are_a_type_error_that_names_both(function, name):
    for other in ("float32", "complex64", "complex128"):
        text = message(function, TypeError, **{name: VALID[function][name].astype(other)})
        assert other in text
        assert "float64" in text
        assert "the same" in text or "same dtype" in text


@pytest.mark.parametrize(
    ("function", "changes", "words"),
    [
        ("conv_forward", {"input": (2, 3, 5, 6)}, ["groups=2", "4 channels", "3 channels"]),
        ("conv_forward", {"input": (5, 6)}, ["input", "3D (unbatched) or 4D (batched)", "[5, 6]"]),
        ("conv_forward", {"input": (2, 4, 1, 6), "padding": 0}, ["(1 x 6)", "(3 x 2)"]),
        ("conv_forward", {"input": (1, 2, 4, 5, 6)}, ["input", "[1, 2, 4, 5, 6]"]),
        ("conv_forward", {"weight": (6, 2)}, ["weight", "[6, 2]", "at least three"]),
        ("conv_forward", {"weight": (6, 3, 3, 2)}, ["[6, 3, 3, 2]", "6 channels", "4 channels"]),
        ("conv_forward", {"weight": (6, 2, 0, 2)}, ["kernel", "[0, 2]", "greater than zero"]),
        (
            "conv_forward",
            {"weight": (1, 2, 3, 2), "bias": None},
            ["groups=2", "at least 2", "[1, 2, 3, 2]"],
        ),
        ("conv_forward", {"bias": (5,)}, ["bias", "[6]", "[5]"]),
        ("conv_forward", {"bias": (6, 1)}, ["bias", "[6]", "[6, 1]"]),
        ("conv_forward", {"bias": ()}, ["bias", "[6]", "[]"]),
        ("conv_transpose2d", {"bias": (6,)}, ["bias", "[4]", "[6]"]),
        ("conv_transpose2d", {"input": (2, 5, 5, 4)}, ["6 channels", "5 channels"]),
        ("conv_transpose2d", {"output_padding": 2}, ["output", "[2, 2]", "smaller than either"]),
        ("conv_input_grad", {"grad_output": (2, 6, 5, 3)}, ["grad_output", "[2, 6, 5, 4]"]),
        ("conv_input_grad", {"grad_output": (2, 4, 5, 4)}, ["grad_output", "[2, 6, 5, 4]"]),
        ("conv_input_grad", {"input_size": (5, 9)}, ["grad_output", "[2, 6, 5, 4]"]),
        ("conv_input_grad", {"input_size": (2, 4, 5, 6)}, ["input_size", "2 ints", "[2, 4, 5, 6]"]),
        ("conv_weight_grad", {"grad_output": (2, 6, 4, 4)}, ["grad_output", "[2, 6, 5, 4]"]),
        ("conv_weight_grad", {"grad_output": (3, 6, 5, 4)}, ["grad_output", "[3, 6, 5, 4]"]),
        ("conv_weight_grad", {"input": (4, 5, 6)}, ["input", "[4, 5, 6]", "[2, 6, 5, 4]"]),
        ("conv_weight_grad", {"kernel_size": (0, 2)}, ["kernel", "[0, 2]", "greater than zero"]),
        ("conv_weight_grad", {"groups": 4}, ["groups=4", "[6, "]),
        ("conv_bias_grad", {"grad_output": (6,)}, ["grad_output", "[6]"]),
        ("im2col", {"input": (6,)}, ["input", "[6]"]),
        ("im2col", {"kernel_size": (9, 2)}, ["(9 x 2)", "greater than actual"]),
        ("col2im", {"columns": (2, 24, 13)}, ["12", "13"]),
        ("col2im", {"columns": (2, 23, 12)}, ["columns", "23", "6"]),
        ("col2im", {"columns": (24,)}, ["columns", "[24]"]),
        ("fold", {"input": (2, 24, 13)}, ["output_size=(5, 6)", "12", "input.size(2)=13"]),
        ("im2col_view", {"input": (2, 4, 3, 3)}, ["(3 x 3)", "(5 x 3)", "greater than actual"]),
        ("zero_pad", {"array": (3,)}, ["padding", "2", "1"]),
        ("matmul", {"b": (5, 3)}, ["a", "b", "[2, 4, 5, 6]", "[5, 3]"]),
        ("matmul", {"b": (3, 6, 3)}, ["[2, 4, 5, 6]", "[3, 6, 3]", "broadcast"]),
        ("matmul", {"b": ()}, ["b", "[]", "at least one"]),
    ],
)
def test_wrong_shapes_are_value_errors(function, changes, words):
    """Shapes in ``changes`` stand for arrays of zeros."""
    changes = {
        name: np.zeros(value, F) if (function, name) in ARRAYS and value is not None else value
        for name, value in changes.items()
    }
    text = message(function, ValueError, **changes)
    for word in words:
        assert word in text


# Parameters


@pytest.mark.parametrize(
    "bad",
    [1.5, "2", b"1", None, object(), [1.5, 1], [None, 1], {1: 2}, {"a"}, ["1", "2"], 1j],
    ids=lambda bad: type(bad).__name__,
)
@pytest.mark.parametrize(("function", "name"), PARAMETERS)
def test_what_is_no_int_is_an_error_that_names_the_parameter(function, name, bad):
    shown = {("fold", "output_size"): "_size", ("unfold", "kernel_size"): "kernel_size"}.get(
        (function, name), name
    )
    assert shown in message(function, (TypeError, ValueError), **{name: bad})


@pytest.mark.parametrize(("function", "name"), PARAMETERS)
def test_negative_values_are_errors_that_name_the_parameter(function, name):
    text = message(function, ValueError, **{name: -3})
    assert name.removesuffix("_size").removeprefix("input").removeprefix("output") in text
    assert "-3" in text


@pytest.mark.parametrize(("function", "name"), PARAMETERS)
def test_too_many_values_are_errors_that_name_the_parameter(function, name):
    if name == "groups":
        bad = (1, 1)
    elif function in ("zero_pad", "unpad"):
        bad = [(1, 1)] * 7
    else:
        bad = (1,) * 7
    text = message(function, (TypeError, ValueError), **{name: bad})
    # Two sizes that differ in length are named together or one by one.
    assert name in text or "size" in text


@pytest.mark.parametrize("padding", ["full", "SAME", "", "circular"])
def test_unknown_padding_strings_are_value_errors(padding):
    text = message("conv_forward", ValueError, padding=padding)
    assert repr(padding) in text
    assert "'valid', 'same'" in text


def test_same_padding_with_a_stride_is_a_value_error():
    text = message("conv_forward", ValueError, padding="same", stride=2)
    assert "padding='same' is not supported for strided convolutions" in text


def test_unknown_keywords_are_type_errors():
    for function in VALID:
        with pytest.raises(TypeError, match="paddding"):
            call(function, paddding=1)


# What is large, and junk


@pytest.mark.parametrize("huge", HUGE)
def test_huge_strides_and_dilations_without_effect(huge):
    """One output needs no stride, one tap no dilation; past 2^31 either may be refused."""
    x, w = np.arange(12.0).reshape(1, 1, 3, 4), np.arange(1.0, 13).reshape(1, 1, 3, 4)
    y = np.array([[[[2.0]]]])
    for function, arguments, exact in [
        ("conv_forward", (x, w), np.full((1, 1, 1, 1), (x * w).sum())),
        ("conv_input_grad", (y, w, (3, 4)), 2 * w),
        ("conv_weight_grad", (x, y, (3, 4)), 2 * x),
    ]:
        try:
            result = getattr(engine, function)(*arguments, stride=huge)
        except (ValueError, OverflowError) as error:
            assert str(error)
        else:
            np.testing.assert_array_equal(result, exact)
    try:
        result = engine.conv_forward(x, w[..., :1, :1], dilation=huge)
    except (ValueError, OverflowError) as error:
        assert str(error)
    else:
        np.testing.assert_array_equal(result, x)


@pytest.mark.subprocess
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc to limit memory")
@pytest.mark.parametrize(
    ("fuzzer", "cases"), [("huge_parameters", 0), ("junk", 3000), ("any_shapes", 500)]
)
def test_junk_arguments_never_crash(fuzzer, cases, run_child):
    """Only TypeError, ValueError, MemoryError and OverflowError, never the end of the process."""
    here = str(Path(__file__).parents[1] / "helpers")
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import fuzz; fuzz.run(*eval(sys.argv[2]))"
    )
    run_child(program, here, repr((fuzzer, cases)), timeout=300)
