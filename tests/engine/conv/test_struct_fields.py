"""Fields of Line and Window: where the kernels find each element of a patch."""

import numpy as np
import pytest
from draws import lay_out

from convcore.engine import reference
from convcore.engine.conv.struct_fields import forward_lines, output_lines, three, window
from convcore.engine.geometry import Axis, make_geometry
from convcore.engine.runtime.layout import layout

CASES = [
    ((2, 3, 8), (1, 3, 3), {"stride": 2, "padding": 2, "dilation": 2}),
    ((2, 2, 5, 4), (1, 2, 3, 2), {"stride": (1, 2), "padding": [(1, 0), (0, 2)]}),
    ((1, 2, 3, 4, 3), (1, 2, 2, 1, 3), {"padding": 1, "dilation": (2, 1, 1)}),
    ((3, 4, 2, 3), (1, 4, 1, 1), {}),
]


def gathered(fields, x):
    """Return the patches that the fields of a Window describe, in x's memory from x[0] on."""
    lines, n, c = fields["line"], *x.shape[:2]
    columns = np.zeros((n, c * fields["taps"], fields["pixels"]))
    for pixel, out in enumerate(np.ndindex(*(a["count"] for a in lines))):
        for number, tap in enumerate(np.ndindex(*(a["taps"] for a in lines))):
            at = [
                a["first"] + j * a["stride"] + t * a["step"]
                for a, j, t in zip(lines, out, tap, strict=True)
            ]
            if not all(0 <= i < a["size"] for i, a in zip(at, lines, strict=True)):
                continue
            inside = sum(i * s for i, s in zip(at, fields["s"], strict=True))
            for i, j in np.ndindex(n, c):
                offset = i * fields["s_n"] + j * fields["s_c"] + inside
                columns[i, j * fields["taps"] + number, pixel] = memory_of(x, offset)
    return columns


def memory_of(x, offset):
    """Return the element that lies so many elements behind the first."""
    first = x[(slice(0, 1),) * x.ndim]
    return np.lib.stride_tricks.as_strided(first, (offset + 1,), (x.itemsize,))[offset]


@pytest.mark.parametrize("name", ["contiguous", "channels_last", "permuted"])
@pytest.mark.parametrize(("x_shape", "w_shape", "steps"), CASES)
def test_a_window_finds_the_elements_of_every_patch(x_shape, w_shape, steps, name, rng):
    x = lay_out(rng.standard_normal(x_shape), name, rng)
    g = make_geometry(x_shape, w_shape, **steps)
    fields = window(forward_lines(g), layout(x.shape, x.strides, x.itemsize))
    assert fields["pixels"] == g.pixels
    assert fields["taps"] == g.taps
    np.testing.assert_array_equal(gathered(fields, x), reference.im2col(x, w_shape[2:], **steps))


def test_outputs_look_at_themselves():
    g = make_geometry((2, 3, 9, 7), (4, 3, 3, 2), stride=2, padding=1)
    for line, out in zip(output_lines(g), (1, *g.output_shape[2:]), strict=True):
        at = [line["first"] + j * line["stride"] for j in range(line["count"])]
        assert at == list(range(out))
        assert line["size"] == out
        assert line["taps"] == 1


def test_missing_axes_come_first_and_change_nothing():
    last = Axis(5, 3, 2)
    assert three([last]) == [Axis(1, 1), Axis(1, 1), last]
    assert three([last] * 3) == [last] * 3


def test_a_matrix_in_place_gives_the_window_its_leading_dimension():
    wide = np.zeros((1, 3, 1, 10))[..., :1]  # channels 10 elements apart, one pixel
    g = make_geometry(wide.shape, (1, 3, 1, 1))
    fields = window(forward_lines(g), layout(wide.shape, wide.strides, 8))
    assert fields["s_c"] == 10
    last = np.moveaxis(np.zeros((1, 2, 3, 16))[..., :4], -1, 1)  # pixels 16 elements apart
    g = make_geometry(last.shape, (1, 4, 1, 1))
    fields = window(forward_lines(g), layout(last.shape, last.strides, 8))
    assert fields["s"][2] == 16
    assert fields["s_c"] == 1
