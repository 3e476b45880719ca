"""Winograd tiles: they cover what is made, and find each tap where it lies."""

import numpy as np
import pytest

from convcore.engine.conv.problem import dense_problem
from convcore.engine.conv.winograd import tiles as winograd_tiles
from convcore.engine.conv.winograd.tiles import SIZES
from convcore.engine.geometry import Axis, make_geometry
from convcore.engine.runtime.layout import dense

SINGLE = np.dtype("f4")


def elements(tiling, size, axis):
    """Return the elements of one axis that the tiles of a Tiling have, within its extent."""
    found = [
        tiling["first"][axis]
        + residue * tiling["residue_step"][axis]
        + tile * tiling["advance"][axis]
        + element * tiling["step"][axis]
        for residue in range(tiling["residues"][axis])
        for tile in range(tiling["tiles"][axis])
        for element in range(size.outputs)
    ]
    return sorted(i for i in found if 0 <= i < tiling["size"][axis])


def problem_of(pass_name, kernel=3, **steps):
    g = make_geometry((2, 8, 17, 14), (8, 8, kernel, kernel), **steps)
    return dense_problem(pass_name, g, SINGLE, True)


def test_a_size_does_the_products_that_its_name_says():
    assert [size.name for size in SIZES[:2]] == ["F(2x2, 3x3)", "F(4x4, 3x3)"]
    assert [size.points for size in SIZES] == [16, 36, 16, 36]
    assert [size.number for size in SIZES] == list(range(len(SIZES)))


@pytest.mark.parametrize("size", SIZES, ids=lambda size: size.name)
@pytest.mark.parametrize("dilation", [1, 2, 3])
def test_tiles_of_a_forward_pass_have_every_output_once(size, dilation):
    problem = problem_of("forward", dilation=dilation, padding=1)
    tiling = winograd_tiles.output_tiling(problem, size, problem.output)
    for axis, out in enumerate(problem.geometry.output_shape[2:]):
        assert elements(tiling, size, axis) == list(range(out))


@pytest.mark.parametrize("size", SIZES[:2], ids=lambda size: size.name)
@pytest.mark.parametrize("steps", [{}, {"padding": 2}, {"dilation": 2, "padding": 1}])
def test_tiles_of_an_input_gradient_have_every_input_once(size, steps):
    problem = problem_of("input_grad", **steps)
    (phase,) = winograd_tiles.phases_of(problem, size)
    for axis, out in enumerate(problem.geometry.input_shape[2:]):
        assert elements(phase["y"], size, axis) == list(range(out))


@pytest.mark.parametrize("kernel", [3, 4])
@pytest.mark.parametrize("padding", [0, 1])
def test_phases_of_a_strided_input_gradient_have_every_input_once(kernel, padding):
    size = SIZES[2]
    problem = problem_of("input_grad", kernel, stride=2, padding=padding)
    phases = winograd_tiles.phases_of(problem, size)
    assert len(phases) == 4
    made = np.zeros(problem.geometry.input_shape[2:], int)
    for phase in phases:
        made[np.ix_(elements(phase["y"], size, 0), elements(phase["y"], size, 1))] += 1
    assert (made == 1).all()


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize(("kernel", "stride", "size"), [(3, 1, SIZES[0]), (3, 2, SIZES[2])])
@pytest.mark.parametrize("rotated", [False, True])
def test_the_phases_have_every_tap_of_the_weights_once(
    kernel, stride, size, channels_last, rotated
):
    w = dense((4, 4, 1, kernel, kernel), channels_last)
    axes = [Axis(9, kernel, stride)] * 2
    found = []
    for row in range(stride):
        for column in range(stride):
            fields = winograd_tiles.filters_of(axes, size, w, (row, column), rotated)
            ranges = [range(*bounds) for bounds in zip(fields["begin"], fields["to"], strict=True)]
            assert all(len(taps) <= size.taps for taps in ranges)
            lines = fields["line"]
            found += [
                fields["first"] + i * lines[0] + j * lines[1] for i in ranges[0] for j in ranges[1]
            ]
    step = w.strides[3:]
    taps = [i * step[0] + j * step[1] for i in range(kernel) for j in range(kernel)]
    assert sorted(found) == sorted(taps)
    if rotated and stride == 1:
        assert found == taps[::-1]


def test_taps_side_by_side_are_read_as_one_run():
    axes = [Axis(9, 3)] * 2
    for channels_last, run in ((False, 9), (True, 0)):
        w = dense((4, 4, 1, 3, 3), channels_last)
        assert winograd_tiles.filters_of(axes, SIZES[0], w, (0, 0), False)["run"] == run
