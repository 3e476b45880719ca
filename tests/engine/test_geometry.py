"""Geometry: held to its defining inequality, not to its own formula."""

import itertools
import math

import numpy as np
import pytest

from convcore.engine.geometry import Axis, make_geometry, per_axis, transposed_geometry


def small_axes():
    """Yield every axis with sizes to 9, kernels to 4, strides and dilations to 3, pads to 3."""
    for size, kernel, stride, dilation, before, after in itertools.product(
        range(1, 10), range(1, 5), range(1, 4), range(1, 4), range(4), range(4)
    ):
        axis = Axis(size, kernel, stride, dilation, before, after)
        if axis.extent <= axis.padded:
            yield axis


def places(axis):
    """Count the starts at which the whole kernel lies inside the padded input, one by one."""
    starts = range(0, axis.padded, axis.stride)
    return sum(start + axis.dilation * (axis.kernel - 1) < axis.padded for start in starts)


# The output size


def test_axis_out_satisfies_the_defining_inequality():
    for a in small_axes():
        reach = a.dilation * (a.kernel - 1) + 1
        padded = a.before + a.size + a.after
        assert (a.out - 1) * a.stride + reach <= padded < a.out * a.stride + reach, a


def test_axis_out_counts_the_places_of_the_kernel():
    for a in small_axes():
        assert a.out == places(a), a


def test_axis_formula_solved_for_the_size():
    """The sizes that give one output size are the solved one and the stride - 1 after it."""
    for a in small_axes():
        solved = (a.out - 1) * a.stride + a.dilation * (a.kernel - 1) + 1 - a.before - a.after
        assert solved <= a.size < solved + a.stride, a
        assert a._replace(size=solved).out == a.out


def test_axis_formula_solved_for_the_kernel():
    """Where stride and dilation leave nothing over, output and input size give the kernel."""
    exact = 0
    for a in small_axes():
        rest = a.before + a.size + a.after - (a.out - 1) * a.stride - 1
        if rest == a.dilation * (a.kernel - 1):
            assert rest // a.dilation + 1 == a.kernel
            exact += 1
        assert rest // a.dilation + 1 >= a.kernel, a
    assert exact > 1000


def test_axis_out_is_below_one_where_the_kernel_does_not_fit():
    assert Axis(2, 3).out < 1
    assert Axis(2, 2, dilation=2).out < 1
    assert Axis(1, 5, stride=3, before=1, after=1).out < 1


@pytest.mark.parametrize("big", [2**31, 2**40, 2**62, 2**100])
def test_axis_sizes_past_machine_integers_are_exact(big):
    assert Axis(big, 3, before=1, after=1).out == big
    assert Axis(2 * big, 2, stride=2).out == big
    geometry = make_geometry((2, 3, big), (4, 3, 1))
    assert geometry.pixels == big
    assert geometry.multiply_adds == 2 * 4 * 3 * big


# Geometry's derived sizes


def test_geometry_derived_sizes():
    g = make_geometry((2, 6, 9, 8), (4, 3, 3, 2), (2, 1), ((1, 2), (0, 3)), (2, 3), 2)
    assert g.rank == 2
    assert g.input_shape == (2, 6, 9, 8)
    assert g.weight_shape == (4, 3, 3, 2)
    assert g.output_shape == (2, 4, 4, 8)
    assert (g.taps, g.columns, g.pixels) == (6, 18, 32)
    assert g.multiply_adds == 2 * 4 * 32 * 18


def test_geometry_is_frozen_and_compares_by_value():
    g = make_geometry((1, 1, 5), (1, 1, 2))
    assert g == make_geometry([1, 1, 5], [1, 1, 2], [1], [(0, 0)], [1], 1)
    assert hash(g) == hash(make_geometry((1, 1, 5), (1, 1, 2)))
    with pytest.raises(AttributeError):
        g.n = 2
    with pytest.raises(AttributeError):
        g.axes[0].size = 2


def test_geometry_holds_python_ints_whatever_comes_in():
    g = make_geometry((1, 1, 5), (1, 1, 2), np.int64(2), np.array([1]), (np.int32(1),), np.int8(1))
    assert all(type(v) is int for v in g.axes[0])
    assert type(g.groups) is int


def test_geometry_takes_an_empty_batch():
    assert make_geometry((0, 3, 5, 5), (2, 3, 3, 3)).output_shape == (0, 2, 3, 3)


# Forms of a parameter


@pytest.mark.parametrize(
    ("padding", "pairs"),
    [
        (2, [(2, 2), (2, 2)]),
        ((1, 2), [(1, 1), (2, 2)]),
        ([1, 2], [(1, 1), (2, 2)]),
        (np.array([1, 2]), [(1, 1), (2, 2)]),
        (((1, 2), (3, 0)), [(1, 2), (3, 0)]),
        ([[1, 2], [3, 0]], [(1, 2), (3, 0)]),
        (np.array([[1, 2], [3, 0]]), [(1, 2), (3, 0)]),
        (((0, 1), 2), [(0, 1), (2, 2)]),
        ("valid", [(0, 0), (0, 0)]),
    ],
)
def test_padding_forms(padding, pairs):
    g = make_geometry((1, 1, 7, 7), (1, 1, 2, 2), padding=padding)
    assert [(a.before, a.after) for a in g.axes] == pairs


def test_padding_same_keeps_the_size_and_puts_the_odd_zero_after():
    for size, kernel, dilation in itertools.product(range(1, 8), range(1, 6), range(1, 4)):
        (axis,) = make_geometry(
            (1, 1, size), (1, 1, kernel), padding="same", dilation=dilation
        ).axes
        assert axis.out == size
        assert 0 <= axis.after - axis.before <= 1


def test_per_axis_repeats_an_int_and_keeps_a_sequence():
    assert per_axis("stride", 2, 3) == (2, 2, 2)
    assert per_axis("stride", (1, 2, 3), 3) == (1, 2, 3)
    assert per_axis("stride", (2,), 3) == (2, 2, 2)
    assert per_axis("stride", range(1, 4), 3) == (1, 2, 3)


# Errors: each names the argument, what it got and what is allowed


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"stride": 0}, ValueError, ["stride", "[0, 0]", ">= 1"]),
        ({"stride": (1, -2)}, ValueError, ["stride", "[1, -2]", ">= 1"]),
        ({"stride": (1, 2, 3)}, ValueError, ["stride", "[1, 2, 3]", "2 ints"]),
        ({"stride": 1.0}, TypeError, ["stride", "1.0", "int"]),
        ({"stride": "2"}, TypeError, ["stride", "'2'", "int"]),
        ({"stride": None}, TypeError, ["stride", "None", "int"]),
        ({"dilation": 0}, ValueError, ["dilation", "[0, 0]", "greater than zero"]),
        ({"dilation": (1, 2, 3)}, ValueError, ["dilation", "[1, 2, 3]", "2 ints"]),
        ({"dilation": (1, 2.5)}, TypeError, ["dilation", "2.5", "int"]),
        ({"padding": -1}, ValueError, ["padding", "-1", ">= 0"]),
        ({"padding": ((0, 1), (2, -3))}, ValueError, ["padding", "(2, -3)", ">= 0"]),
        ({"padding": (1, 2, 3)}, ValueError, ["padding", "[1, 2, 3]", "2 ints"]),
        ({"padding": ((1, 2),)}, ValueError, ["padding", "[(1, 2)]", "2 ints"]),
        ({"padding": ((1, 2), (3, 4, 5))}, ValueError, ["padding", "[3, 4, 5]", "2 ints"]),
        ({"padding": 1.5}, TypeError, ["padding", "1.5", "int"]),
        ({"padding": "full"}, ValueError, ["padding", "'full'", "'valid', 'same'"]),
        ({"padding": "same", "stride": 2}, ValueError, ["padding='same'", "[2, 2]"]),
        ({"groups": 0}, ValueError, ["groups", "0", ">= 1"]),
        ({"groups": 1.0}, TypeError, ["groups", "1.0", "int"]),
        ({"groups": 8}, ValueError, ["groups=8", "at least 8", "[4, 3, 3, 2]"]),
        ({"groups": 3}, ValueError, ["groups=3", "divisible by 3", "[4, 3, 3, 2]"]),
        ({"groups": 2}, ValueError, ["groups=2", "input[1, 3, 5, 5]", "6 channels", "3 channels"]),
        ({"input_shape": (1, 2, 5, 5)}, ValueError, ["input[1, 2, 5, 5]", "3 channels", "but got"]),
        ({"input_shape": (5, 5)}, ValueError, ["3D (unbatched) or 4D (batched)", "[5, 5]"]),
        ({"input_shape": (1, 3, 2, 5)}, ValueError, ["(2 x 5)", "(3 x 2)", "greater than actual"]),
        ({"weight_shape": (4, 3)}, ValueError, ["weight", "[4, 3]", "at least three"]),
        ({"weight_shape": (4, 3, 1, 1, 1, 1)}, ValueError, ["weight", "[4, 3, 1, 1, 1, 1]"]),
        ({"weight_shape": (4, 3, 0, 2)}, ValueError, ["kernel size", "[0, 2]", "greater than"]),
        ({"weight_shape": (4, 0, 3, 2)}, ValueError, ["weight", "[4, 0, 3, 2]", "at least one"]),
    ],
)
def test_geometry_errors_name_argument_value_and_limits(changes, error, words):
    arguments = {"input_shape": (1, 3, 5, 5), "weight_shape": (4, 3, 3, 2)} | changes
    with pytest.raises(error) as caught:
        make_geometry(**arguments)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"output_padding": 2}, ValueError, ["output_padding", "[2, 2]", "smaller than either"]),
        ({"output_padding": -1}, ValueError, ["output_padding", "[-1, -1]", "at least 0"]),
        ({"output_padding": (1, 1, 1)}, ValueError, ["output_padding", "[1, 1, 1]", "2 ints"]),
        ({"output_padding": 0.5}, TypeError, ["output_padding", "0.5", "int"]),
        ({"stride": 0}, ValueError, ["stride", "[0, 0]", "at least 1"]),
        ({"dilation": 0}, ValueError, ["dilation", "[0, 0]", "at least 1"]),
        ({"input_shape": (1, 4, 5, 5)}, ValueError, ["input[1, 4, 5, 5]", "3 channels", "4 chan"]),
        ({"input_shape": (5, 5)}, ValueError, ["conv_transpose2d", "[5, 5]"]),
        ({"padding": 9}, ValueError, ["(5 x 5)", "output size", "too small"]),
        ({"groups": 2}, ValueError, ["groups=2", "divisible by 2", "[3, 4, 3, 2]"]),
        ({"weight_shape": (3, 4)}, ValueError, ["weight", "[3, 4]", "at least three"]),
    ],
)
def test_transposed_geometry_errors_name_argument_value_and_limits(changes, error, words):
    arguments = {"input_shape": (1, 3, 5, 5), "weight_shape": (3, 4, 3, 2), "stride": 2} | changes
    with pytest.raises(error) as caught:
        transposed_geometry(**arguments)
    for word in words:
        assert word in str(caught.value)


# Transposed


def test_transposed_geometry_has_the_shapes_of_a_transposed_convolution():
    for size, kernel, stride, dilation, before, after in itertools.product(
        range(1, 6), range(1, 4), range(1, 4), range(1, 4), range(3), range(3)
    ):
        for extra in range(max(stride, dilation)):
            canvas = (size - 1) * stride + dilation * (kernel - 1) + 1 + extra
            out = canvas - before - after
            arguments = (
                (2, 6, size),
                (6, 2, kernel),
                stride,
                [(before, after)],
                extra,
                dilation,
                3,
            )
            if out < 1:
                with pytest.raises(ValueError, match="too small"):
                    transposed_geometry(*arguments)
                continue
            g = transposed_geometry(*arguments)
            assert g.output_shape == (2, 6, size)
            assert g.input_shape == (2, 6, out)
            (axis,) = g.axes
            assert places(axis) == size
            # The last tap of the last place is the end of the canvas, less the output padding.
            last = (size - 1) * stride + dilation * (kernel - 1) - before
            assert last == out - 1 + after - extra


def test_transposed_geometry_takes_output_padding_up_to_the_dilation():
    """Output padding 1 is legal with stride 1 if the dilation is 2: a size no stride can reach."""
    g = transposed_geometry((1, 1, 4), (1, 1, 3), 1, 0, 1, 2)
    assert g.input_shape == (1, 1, 9)
    assert g.output_shape == (1, 1, 4)


def test_transposed_geometry_undoes_the_sizes_of_a_convolution():
    """The right output padding leads back to any size that the convolution came from."""
    for a in small_axes():
        if a.before + a.after > 2 or a.size > 6:
            continue
        left = a.padded - ((a.out - 1) * a.stride + a.extent)
        pads = [(a.before, a.after)]
        g = transposed_geometry((1, 1, a.out), (1, 1, a.kernel), a.stride, pads, left, a.dilation)
        assert g.input_shape == (1, 1, a.size)
        assert math.prod(g.output_shape) == a.out
