"""The stride decomposition of one axis: phases that together are the input gradient."""

import pytest
from draws import axes
from hypothesis import given
from properties import examples

from convcore.engine.conv.stride_phases import axis_phases
from convcore.engine.geometry import Axis

MANY = examples(200)


@MANY
@given(axis=axes())
def test_phases_cover_every_input_exactly_once(axis):
    covered = [p.start + j * p.stride for p in axis_phases(axis) for j in range(p.outs)]
    assert sorted(covered) == list(range(axis.size))


@MANY
@given(axis=axes())
def test_phases_have_every_pair_of_input_and_tap_that_an_output_joins(axis):
    """Also those of outputs beyond the last, which the kernels leave out."""
    found = [
        (p.start + j * p.stride, p.tap - t * p.period, j + p.first + t * p.step)
        for p in axis_phases(axis)
        for j in range(p.outs)
        for t in range(p.taps)
    ]
    places = [
        (i, k, i + axis.before - k * axis.dilation)
        for i in range(axis.size)
        for k in range(axis.kernel)
    ]
    expected = [(i, k, at // axis.stride) for i, k, at in places if at % axis.stride == 0]
    assert sorted(found) == sorted(expected)


def test_stride_one_is_one_phase_of_all_taps_turned_round():
    (phase,) = axis_phases(Axis(7, 3, 1, 2, 1, 1))
    assert (phase.start, phase.outs, phase.taps, phase.step, phase.tap) == (0, 7, 3, 2, 2)


@pytest.mark.parametrize("stride", [1, 3])
def test_an_empty_input_has_no_phases(stride):
    assert axis_phases(Axis(0, 1, stride, 1, 2, 2)) == []
