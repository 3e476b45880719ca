"""The indirection buffer: how outputs are cut into blocks, and the pixels that a block sees."""

from __future__ import annotations

import numpy as np
import pytest

from convcore import engine
from convcore.backends import conv
from convcore.engine.conv.algorithms.indirection import cut_lines


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
