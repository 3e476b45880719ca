"""im2col and gemm: every forward pass and weight gradient, and input gradients of stride 1."""

import numpy as np
import pytest
from draws import DTYPES

from convcore.engine.conv.blocks import PART_BYTES
from convcore.engine.conv.im2col.plan import IM2COL
from convcore.engine.conv.problem import PASSES, dense_problem
from convcore.engine.geometry import make_geometry

LAYER = (2, 6, 13, 11), (8, 3, 3, 2)
STEPS = {"padding": [(1, 0), (2, 1)], "dilation": (2, 1), "groups": 2}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "permuted", "strided"])
@pytest.mark.parametrize("pass_name", PASSES)
def test_every_pass_is_exact_in_every_layout(pass_name, layout, dtype, forced):
    forced("im2col", pass_name, *LAYER, dtype, layout, **STEPS)


@pytest.mark.parametrize("pass_name", ["forward", "weight_grad"])
@pytest.mark.parametrize("stride", [(2, 3), 4])
def test_strides_are_gathered_forward_and_for_the_weights(pass_name, stride, forced):
    forced("im2col", pass_name, *LAYER, stride=stride, groups=2)


def test_a_strided_input_gradient_is_refused_with_its_phases():
    g = make_geometry(*LAYER, stride=(2, 3), groups=2)
    problems = {name: dense_problem(name, g, np.dtype("f4"), False) for name in PASSES}
    assert IM2COL.impossible(problems["input_grad"]).startswith("6 remainders of the stride")
    assert IM2COL.impossible(problems["forward"]) is None
    assert IM2COL.impossible(problems["weight_grad"]) is None


def test_patches_are_gathered_in_parts_that_fit_a_cache(forced):
    plan = forced("im2col", "forward", (1, 300, 24, 24), (4, 300, 3, 3), padding=1)
    assert plan.patches < plan.block * 300 * 9
    assert plan.patches * plan.itemsize <= PART_BYTES
    assert f"{-(-plan.patches * plan.itemsize >> 10)} KiB" in plan.reason
