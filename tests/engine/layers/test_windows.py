"""Windows along an axis: which elements taps read, and moves as linear maps with adjoints."""

from itertools import pairwise

import numpy as np
import pytest
from draws import axes
from hypothesis import assume, given
from hypothesis import strategies as st
from properties import examples

from convcore.engine.geometry import Axis
from convcore.engine.layers import windows

MANY = examples(200)


def matrix(moves, out, size):
    """Return the moves as a matrix from inputs to outputs."""
    columns = []
    for unit in np.eye(size):
        column = np.zeros(out)
        windows.add_moved(column, unit, [moves])
        columns.append(column)
    return np.stack(columns, axis=1)


@MANY
@given(axis=axes())
def test_each_tap_moves_the_inputs_that_outputs_have_under_it(axis):
    moves = windows.tap_moves(axis)
    assert len(moves) == axis.kernel
    for tap, (outputs, inputs) in enumerate(moves):
        at = [(j, j * axis.stride - axis.before + tap * axis.dilation) for j in range(axis.out)]
        pairs = [(j, i) for j, i in at if 0 <= i < axis.size]
        found = zip(range(axis.out)[outputs], range(axis.size)[inputs], strict=True)
        assert list(found) == pairs


@MANY
@given(axis=axes())
def test_clipped_windows_are_what_taps_see_of_the_input(axis):
    assume(axis.before <= axis.extent // 2)  # as pool_axes demands
    for j, (window, first) in enumerate(
        zip(windows.clipped_windows(axis), windows.first_taps(axis), strict=True)
    ):
        at = [j * axis.stride - axis.before + t * axis.dilation for t in range(axis.kernel)]
        assert list(range(axis.size)[window]) == [i for i in at if 0 <= i < axis.size]
        assert all(i < 0 for i in at[:first])
        assert first >= axis.kernel or at[first] >= 0


@given(size=st.integers(1, 40), out=st.integers(1, 40))
@MANY
def test_adaptive_windows_cover_an_axis_as_evenly_as_can_be(size, out):
    found = windows.adaptive_windows(size, out)
    assert len(found) == out
    assert (found[0].start, found[-1].stop) == (0, size)
    assert all(a.stop >= b.start for a, b in pairwise(found))
    lengths = [window.stop - window.start for window in found]
    assert min(lengths) >= 1
    assert max(lengths) <= -(-size // out) + 1


@MANY
@given(axis=axes())
def test_exchanged_moves_are_the_adjoint(axis):
    assume(axis.before <= axis.extent // 2)
    clipped = windows.window_moves(windows.clipped_windows(axis))
    for moves in (windows.tap_moves(axis), clipped):
        there = matrix(moves, axis.out, axis.size)
        back = matrix(windows.adjoint(moves), axis.size, axis.out)
        np.testing.assert_array_equal(back, there.T)


def test_moves_of_two_axes_are_added_in_every_combination():
    source = np.arange(12.0).reshape(3, 4)
    halves = windows.window_moves([slice(0, 2), slice(2, 4)])
    target = np.ones((3, 2))
    windows.add_moved(target, source, [windows.tap_moves(Axis(3, 1)), halves])
    np.testing.assert_array_equal(target, 1 + source.reshape(3, 2, 2).sum(-1))


@pytest.mark.parametrize("shape", [(3, 5, 100, 100), (40, 3, 9, 9), (1, 2, 700, 700), (2, 0, 4)])
def test_blocks_are_whole_planes_that_cover_each_once(shape):
    seen = np.zeros(shape[:2], int)
    for block in windows.blocks(shape, 8):
        seen[block] += 1
        planes = seen[block].size
        assert planes <= 1 or planes * np.prod(shape[2:]) * 8 <= windows.BLOCK_BYTES
    assert (seen == 1).all()


@MANY
@given(
    size=st.integers(1, 20), kernel=st.integers(1, 5), stride=st.integers(1, 5),
    pad=st.integers(0, 2), dilation=st.integers(1, 3),
)  # fmt: skip
def test_with_ceil_mode_no_stride_is_left_over_and_no_window_begins_in_the_padding(
    size, kernel, stride, pad, dilation
):
    extent = dilation * (kernel - 1) + 1
    assume(pad <= extent // 2 and size + 2 * pad >= extent)
    (plain,) = windows.pool_axes(1, (size,), (kernel,), stride, pad, dilation)
    (ceil,) = windows.pool_axes(1, (size,), (kernel,), stride, pad, dilation, True)
    assert (ceil.out - 1) * stride < size + pad
    assert ceil.out - plain.out in (0, 1)
    left = (size + 2 * pad - extent) % stride
    assert left == 0 or ceil.out > plain.out or plain.out * stride >= size + pad


def test_a_stride_that_is_not_given_is_the_kernel():
    for stride in (None, (), []):
        assert [a.stride for a in windows.pool_axes(1, (9, 9), (2, 3), stride, 0)] == [2, 3]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kernel": (0, 2)}, "kernel size should be greater than zero"),
        ({"stride": (1, 0)}, "stride should not be zero"),
        ({"dilation": 0}, "dilation should be greater than zero"),
        ({"padding": -1}, "pad must be non-negative, but got pad: -1"),
        ({"padding": 2}, "pad=2, kernel_size=3 and dilation=1"),
        ({"kernel": (9, 3)}, r"input size: \(7x8x8\).*\(7x0x3\). Output size is too small"),
    ],
)
def test_errors_say_what_is_wrong_about_the_steps(changes, words):
    steps = {"kernel": (3, 3), "stride": 2, "padding": 0, "dilation": 1} | changes
    with pytest.raises(ValueError, match=words):
        windows.pool_axes(7, (8, 8), **steps)
