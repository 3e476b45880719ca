"""Stride decomposition: a strided input gradient without one product by a zero put between."""

import numpy as np
import pytest

from convcore.engine.conv.im2col.gemm import MOST_PHASES
from convcore.engine.conv.im2col.stride_decomposition import STRIDE_DECOMPOSITION
from convcore.engine.conv.problem import dense_problem
from convcore.engine.geometry import make_geometry

LAYERS = [
    ((2, 6, 13, 11), (8, 3, 3, 2), {"stride": (2, 3), "padding": (1, 4), "groups": 2}),
    ((3, 2, 70), (5, 2, 5), {"stride": 4, "dilation": 6, "padding": 2}),
    ((1, 4, 5, 9, 9), (6, 4, 3, 2, 1), {"stride": (2, 2, 4), "padding": 1}),
    ((2, 3, 9, 9), (4, 3, 1, 1), {"stride": 3}),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "strided"])
@pytest.mark.parametrize(("x_shape", "w_shape", "steps"), LAYERS)
def test_input_gradient_is_exact_in_every_layout(x_shape, w_shape, steps, layout, dtype, forced):
    forced("stride_decomposition", "input_grad", x_shape, w_shape, dtype, layout, **steps)


def test_every_product_is_one_of_the_definition(forced):
    plan = forced("stride_decomposition", "input_grad", (2, 16, 12, 12), (8, 16, 2, 2), stride=2)
    g = make_geometry((2, 16, 12, 12), (8, 16, 2, 2), stride=2)
    assert plan.multiply_adds == g.multiply_adds


def test_a_stride_of_one_and_too_many_phases_are_refused():
    def reason(stride):
        g = make_geometry((1, 16, 40, 40), (8, 16, 3, 3), stride=stride)
        return STRIDE_DECOMPOSITION.impossible(
            dense_problem("input_grad", g, np.dtype("f4"), False)
        )

    assert reason(1) == "a stride of 1 has one phase"
    assert reason(4) is None
    assert reason(5) == f"25 remainders of the stride: more small gemms than {MOST_PHASES}"
