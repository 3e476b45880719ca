"""Fields of direct convolution: the offset and tap of each product, and what it cannot read."""

import numpy as np
import pytest
from draws import axes
from hypothesis import given
from properties import examples

from convcore.engine import reference
from convcore.engine.conv import direct
from convcore.engine.conv.problem import PASSES, dense_problem
from convcore.engine.geometry import Axis, Geometry, make_geometry
from convcore.engine.runtime.layout import dense

MANY = examples(200)
SINGLE = np.dtype("f4")


def products(axis, x, w):
    """Return what the fields of an axis make of x: a sum over the taps of each phase."""
    y = np.zeros(axis["out"])
    for place in range(axis["out"]):
        j, phase = divmod(place, axis["phases"])
        for n in range(axis["begin"][phase], axis["begin"][phase + 1]):
            i = n - axis["begin"][phase]
            offset = axis["first"][phase] + i * axis["step"]
            assert axis["low"] <= offset < axis["low"] + axis["span"]
            if 0 <= j * axis["stride"] + offset < axis["size"]:
                tap = axis["tap"][phase] + i * axis["tap_step"]
                y[place] += x[j * axis["stride"] + offset] * w[tap]
    return y


def steps_of(axis):
    return {
        "stride": axis.stride,
        "padding": [(axis.before, axis.after)],
        "dilation": axis.dilation,
    }


@MANY
@given(axis=axes())
def test_the_fields_of_an_axis_are_its_correlation(axis):
    x, w = np.arange(1.0, axis.size + 1), np.arange(1.0, axis.kernel + 1)
    y = reference.conv_forward(x[None, None], w[None, None], **steps_of(axis))
    assert products(direct._axis(axis), x, w).tolist() == y[0, 0].tolist()


@MANY
@given(axis=axes())
def test_the_fields_of_a_gradients_axis_are_its_adjoint_with_taps_in_either_order(axis):
    y, w = np.arange(1.0, axis.out + 1), np.arange(1.0, axis.kernel + 1)
    x = reference.conv_input_grad(y[None, None], w[None, None], (axis.size,), **steps_of(axis))
    assert products(direct._gradient_axis(axis, False), y, w).tolist() == x[0, 0].tolist()
    assert products(direct._gradient_axis(axis, True), y, w[::-1]).tolist() == x[0, 0].tolist()


def test_a_direct_problem_has_its_channels_taps_and_elements():
    g = make_geometry((2, 6, 9, 8), (6, 1, 3, 5), padding=(1, 2), groups=6)
    fields = direct.direct_fields(dense_problem("forward", g, SINGLE, True), False, 4)
    assert (fields["taps"], fields["kernel_columns"], fields["channels"]) == (15, 5, 6)
    assert fields["size"] == np.prod(g.input_shape)
    assert (fields["rows"], fields["channels_last"]) == (4, True)
    gradient = direct.direct_fields(dense_problem("input_grad", g, SINGLE, True), False, 4)
    assert gradient["size"] == np.prod(g.output_shape)


@pytest.mark.parametrize(
    ("axis", "specialisation", "transposed"),
    [
        (Axis(9, 3, 1, 1, 1, 1), 31, 31),
        (Axis(9, 5, 2, 1, 2, 2), 52, -52),
        (Axis(9, 5, 2, 1, 1, 1), 52, 0),
        (Axis(9, 3, 3, 1, 1, 1), 0, 0),
        (Axis(9, 3, 1, 2, 2, 2), 0, 0),
        (Axis(9, 4, 1, 1, 2, 2), 0, 0),
    ],
)
def test_common_kernels_and_strides_have_loops_of_their_own(axis, specialisation, transposed):
    assert direct._specialisation(axis, axis, False) == specialisation
    assert direct._specialisation(axis, axis, True) == transposed
    assert direct._specialisation(axis, Axis(9, 7, 1, 1, 3, 3), False) == 0


def test_slices_that_see_one_other_have_the_loops_of_two_axes():
    row = Axis(9, 3, 1, 1, 1, 1)

    def specialisation(depth, name):
        g = Geometry(2, 32, 32, 32, (depth, row, row))
        problem = dense_problem(name, g, SINGLE, True)
        return direct.direct_fields(problem, False, 4)["specialisation"]

    found = {
        depth: [specialisation(depth, name) for name in PASSES]
        for depth in (Axis(8, 1), Axis(8, 1, 2), Axis(8, 1, 1, 1, 1, 1), Axis(8, 3, 1, 1, 1, 1))
    }
    assert list(found.values()) == [[31, 31, 31], [31, 0, 31], [0, 0, 31], [0, 0, 31]]


def test_what_cannot_be_read_is_refused_with_the_reason():
    def reason(g, dtype=SINGLE, name="forward"):
        return direct.cannot_read(dense_problem(name, g, dtype, False))

    plain = make_geometry((2, 4, 9, 9), (4, 1, 3, 3), groups=4)
    assert all(reason(plain, name=name) is None for name in PASSES)
    assert reason(plain, np.dtype("f8")) == "not float32"
    assert reason(Geometry(1, 1, 1, 1, (Axis(3, 3), Axis(3, 3), Axis(3, 3)))) is None
    assert reason(make_geometry((0, 4, 9, 9), (4, 1, 3, 3), groups=4)) == "an empty array"
    assert reason(Geometry(2, 4, 4, 4, (Axis(2, 3), Axis(9, 3)))) == "an empty array"
    long = make_geometry((1, 1, direct.KERNEL + 1), (1, 1, direct.KERNEL + 1))
    assert reason(long) == f"a kernel longer than {direct.KERNEL}"
    far = make_geometry((1, 1, 99), (1, 1, 3), stride=direct.PHASES + 1)
    assert reason(far) is None
    assert reason(far, name="input_grad") == f"a stride of more than {direct.PHASES}"


@pytest.mark.parametrize("side", ["left", "right"])
def test_pixels_with_gaps_are_refused_and_weights_with_gaps_are_not(side):
    g = make_geometry((2, 4, 9, 9), (4, 1, 3, 3), groups=4)
    for name in PASSES:
        problem = dense_problem(name, g, SINGLE, False)
        array = getattr(problem, side)
        apart = array._replace(strides=tuple(2 * s for s in array.strides))
        found = direct.cannot_read(problem._replace(**{side: apart}))
        weights = side == "right" and name != "weight_grad"
        assert (found is None) == weights


def test_an_axis_of_length_one_may_have_any_stride():
    array = dense((2, 3, 1, 4, 5), False)
    strides = (*array.strides[:2], 12345, *array.strides[3:])
    assert direct.is_dense(array._replace(strides=strides), array)
    assert not direct.is_dense(dense(array.shape, True), array)
