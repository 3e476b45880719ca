"""The indirection buffer: how outputs are cut into blocks, and the pixels that a block sees."""

import numpy as np
import pytest

from convcore import engine
from convcore.backends import conv
from convcore.engine.conv.indirect import indirection
from convcore.engine.conv.indirect.indirection import cut_lines, cut_pixels
from convcore.engine.conv.struct_fields import forward_lines
from convcore.engine.geometry import make_geometry
from convcore.engine.runtime.layout import dense, layout


@pytest.mark.parametrize("stride", [1, 9])
def test_pixels_too_far_apart_are_not_turned(stride):
    g = engine.make_geometry((2, 8, 400, 500), (6, 8, 2, 2), stride, 3, dilation=390)
    assert "too many" in dict(engine.plan_conv(g, "float32").forward.refused)["indirect"]
    with conv.flags(algorithm="indirect"):
        assert engine.plan_conv(g, "float32", channels_last=True).forward.algorithm == "indirect"


def test_blocks_are_whole_lines_or_planes_where_those_are_short():
    assert cut_lines(8, [1, 28, 28], 192).size % 28 == 0
    assert cut_lines(8, [1, 7, 7], 192).size % 49 == 0
    for counts in ([1, 1, 1], [2, 3, 5], [1, 40, 13], [3, 1, 1000], [1, 1, 193]):
        for most in (24, 96, 192):
            blocks = cut_lines(5, counts, most)
            total = 5 * int(np.prod(counts))
            assert blocks.size <= 1.5 * most
            assert blocks.unit * (blocks.count // blocks.per_unit) == total
            assert (
                (blocks.per_unit - 1) * blocks.size < blocks.unit <= blocks.per_unit * blocks.size
            )


def test_blocks_of_pixels_are_of_one_size_but_for_the_last():
    assert (cut_pixels(196, 24).size, cut_pixels(196, 24).count) == (24, 9)
    assert (cut_pixels(49, 192).size, cut_pixels(49, 192).count) == (49, 1)
    assert cut_pixels(0, 24).count == 0


@pytest.mark.parametrize("taps", [0, 1, 9, 49, 500])
def test_pointers_of_a_block_fit_their_bytes_or_it_is_the_least(taps):
    pixels = indirection.most_pixels(taps)
    assert indirection.LEAST_BLOCK <= pixels <= indirection.BLOCK
    assert pixels % indirection.ROWS == 0
    fits = taps * pixels * indirection.POINTER <= indirection.POINTER_BYTES
    assert fits == (indirection.too_many_taps(taps) is None)


@pytest.mark.parametrize("seen", [0, 1, 500, 10_000, 32_768, 32_769])
def test_packed_channels_fit_their_bytes_or_too_many_pixels_are_seen(seen):
    channels = indirection.most_channels(seen)
    assert channels % indirection.FEWEST == 0
    assert (4 * seen * channels <= indirection.MOST_PACKED_BYTES) == (
        indirection.too_many_pixels(seen) is None
    )


def test_the_span_of_an_array_reaches_from_its_first_element_to_its_last():
    array = np.zeros((2, 3, 4, 5), "f4")
    assert indirection.span(layout(array.shape, array.strides, 4)) == array.size
    part = array[:, :2, 1:, ::2]
    last = part[-1:, -1:, -1:, -1:]
    distance = (last.ctypes.data - part.ctypes.data) // 4
    assert indirection.span(layout(part.shape, part.strides, 4)) == distance + 1
    back = array[..., ::-1]
    assert indirection.span(layout(back.shape, back.strides, 4)) == 0


@pytest.mark.parametrize("steps", [{}, {"stride": 2}, {"dilation": 3}, {"padding": 2, "stride": 3}])
@pytest.mark.parametrize("most", [24, 192])
def test_no_block_sees_more_pixels_than_the_bound(most, steps):
    g = make_geometry((3, 4, 14, 17), (4, 4, 3, 2), **steps)
    x = dense((*g.input_shape[:2], 1, *g.input_shape[2:]), False)
    lines = forward_lines(g)
    rows = indirection.rows(lines, [lines[2]], x, True)
    blocks = cut_lines(g.n, indirection.counts_of(lines), most)
    height, width = lines[1:]
    pixels = list(np.ndindex(g.n, *g.output_shape[2:]))
    for begin in range(0, blocks.count * blocks.size, blocks.size):
        seen = {
            (n, i, j)
            for n, y, x in pixels[begin : begin + blocks.size]
            for i in inputs(height, y)
            for j in inputs(width, x)
        }
        assert len(seen) <= indirection.seen_pixels(rows, blocks)


def inputs(axis, output):
    """Return the inputs of an axis that an output sees."""
    at = (axis["first"] + output * axis["stride"] + t * axis["step"] for t in range(axis["taps"]))
    return [i for i in at if 0 <= i < axis["size"]]
