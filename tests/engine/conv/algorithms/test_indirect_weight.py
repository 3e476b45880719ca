"""Weight gradient by indirection: pieces of the gradient, each summed in runs of pixels."""

import numpy as np
import pytest

from convcore.engine.conv.blocks import PARTIAL_BYTES
from convcore.engine.conv.indirect import weight as indirect_weight
from convcore.engine.conv.problem import dense_problem
from convcore.engine.geometry import make_geometry
from convcore.engine.runtime import _isa

LAYERS = [
    ((2, 16, 13, 11), (18, 16, 3, 2), {}),
    ((3, 34, 12, 9), (18, 17, 3, 3), {"stride": (2, 3), "padding": (1, 4), "groups": 2}),
    ((1, 5, 20, 20), (6, 5, 7, 7), {"dilation": 2, "padding": 3}),
    ((2, 300, 6, 5), (40, 300, 2, 2), {}),
]


@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "permuted", "strided"])
@pytest.mark.parametrize(("x_shape", "w_shape", "steps"), LAYERS)
def test_the_gradient_is_exact_in_every_layout(x_shape, w_shape, steps, layout, forced):
    plan = forced("indirect", "weight_grad", x_shape, w_shape, "float32", layout, **steps)
    assert plan.patches == 0
    assert plan.shared_bytes <= PARTIAL_BYTES
    assert (plan.shared > 0) == (plan.partials > 1)


@pytest.mark.parametrize(("x_shape", "w_shape", "steps"), LAYERS)
def test_pieces_cover_taps_and_channels_and_their_sums_fit_a_cache(x_shape, w_shape, steps):
    g = make_geometry(x_shape, w_shape, **steps)
    problem = dense_problem("weight_grad", g, np.dtype("f4"), True)
    cuts = indirect_weight._pieces(problem, indirect_weight.most_seen(problem), bfloat16=False)
    for name, total in (("tap", g.taps), ("c", problem.c), ("o", problem.o)):
        block, count = cuts[f"{name}_block"], cuts[f"{name}_blocks"]
        assert (count - 1) * block < total <= count * block
    assert cuts["tap_block"] <= indirect_weight.TAPS
    row = -(-cuts["c_block"] // _isa.lanes()) * _isa.lanes()
    least = indirect_weight.ROWS * cuts["tap_block"] * row
    sums = cuts["o_block"] * cuts["tap_block"] * row
    assert sums <= max(indirect_weight.SUMS, least) + least


def test_only_whole_vectors_of_channels_side_by_side_are_read_in_place():
    def packs(c, channels_last):
        g = make_geometry((1, c, 9, 9), (4, c, 3, 3))
        return indirect_weight.packs_input(
            dense_problem("weight_grad", g, np.dtype("f4"), channels_last)
        )

    whole = 2 * _isa.lanes()
    assert packs(whole, False)
    assert not packs(whole, True)
    assert packs(whole + 1, True)
