"""Input gradient by gemm and col2im: columns of all taps, added where each tap reads."""

import pytest
from draws import DTYPES, axes
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from convcore.engine.conv.im2col import gemm_col2im
from convcore.engine.geometry import Axis, Geometry

LAYERS = [
    ((2, 6, 13, 11), (8, 3, 3, 2), {"stride": (2, 3), "padding": (1, 4), "groups": 2}),
    ((3, 2, 70), (5, 2, 5), {"dilation": 3, "padding": 2}),
    ((1, 4, 3, 40, 9), (6, 4, 3, 2, 1), {"stride": (1, 2, 5)}),
    ((1, 3, 200, 3), (4, 3, 1, 3), {"padding": (0, 1)}),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "permuted", "strided"])
@pytest.mark.parametrize(("x_shape", "w_shape", "steps"), LAYERS)
def test_input_gradient_is_exact_in_every_layout(x_shape, w_shape, steps, layout, dtype, forced):
    forced("gemm_col2im", "input_grad", x_shape, w_shape, dtype, layout, **steps)


@examples(200)
@given(axis=axes(), tile=st.integers(1, 9))
def test_outputs_are_counted_once_for_each_tile_between_whose_ends_they_reach(axis, tile):
    """From an output's first tap to its last: what lies between two taps counts too."""
    firsts = [j * axis.stride - axis.before for j in range(axis.out)]
    tiles = range(0, axis.size, tile)
    made = sum(
        first < min(low + tile, axis.size) and first + axis.extent > low
        for first in firsts
        for low in tiles
    )
    assert gemm_col2im._made(axis, tile) == made


def test_the_outermost_axis_of_several_outputs_is_tiled():
    one, many, more = Axis(3, 3), Axis(9, 3), Axis(10, 3)
    assert gemm_col2im._tiled_axis(Geometry(1, 1, 1, 1, (one, many, more))) is many
    assert gemm_col2im._tiled_axis(Geometry(1, 1, 1, 1, (one, one, one))) is one


def test_few_images_are_cut_into_tiles_and_many_are_not(forced):
    shapes = (2, 200, 9), (3, 2, 3, 3)
    few = forced("gemm_col2im", "input_grad", (1, *shapes[0]), shapes[1])
    many = forced("gemm_col2im", "input_grad", (16, *shapes[0]), shapes[1])
    assert few.items > 1 and few.tile < 200
    assert many.items == 16 and many.tile == 200
