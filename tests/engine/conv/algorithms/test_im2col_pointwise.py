"""Pointwise convolution: a product of matrices that lie in memory already."""

import numpy as np
import pytest

from convcore import engine
from convcore.backends import conv
from convcore.engine.conv.im2col.pointwise import POINTWISE
from convcore.engine.conv.problem import PASSES, dense_problem
from convcore.engine.geometry import make_geometry

LAYER = (3, 8, 20, 18), (12, 4, 1, 1)


@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
@pytest.mark.parametrize("pass_name", PASSES)
def test_every_pass_is_exact_and_gathers_nothing(pass_name, layout, forced):
    plan = forced("pointwise", pass_name, *LAYER, "float64", layout, groups=2)
    assert plan.patches == 0


@pytest.mark.parametrize("pass_name", PASSES)
def test_small_images_share_a_block(pass_name, forced):
    """Of which contiguous ones must be gathered, being no matrix together."""
    plan = forced("pointwise", pass_name, (40, 8, 3, 3), (5, 8, 1, 1))
    assert plan.block > 9
    assert plan.patches > 0


def test_each_image_is_multiplied_by_the_weights(rng):
    x, w = rng.standard_normal((2, 8, 5, 7)), rng.standard_normal((6, 8, 1, 1))
    with conv.flags(algorithm="pointwise"):
        y = engine.conv_forward(x, w)
    expected = np.tensordot(w[..., 0, 0], x, axes=(1, 1)).swapaxes(0, 1)
    np.testing.assert_allclose(y, expected, atol=1e-13)


@pytest.mark.parametrize(
    ("kernel", "steps", "reason"),
    [
        ((1, 2), {}, "a kernel of 2, not 1"),
        ((1, 1), {"stride": (1, 3)}, "a stride of 3, not 1"),
        ((1, 1), {"padding": [(0, 0), (0, 1)]}, "padding"),
        ((1, 1), {}, None),
    ],
)
def test_what_is_not_pointwise_is_refused_with_the_reason(kernel, steps, reason):
    g = make_geometry((2, 4, 9, 9), (4, 4, *kernel), **steps)
    for name in PASSES:
        assert POINTWISE.impossible(dense_problem(name, g, np.dtype("f4"), False)) == reason


def test_an_array_of_the_other_format_is_no_matrix():
    g = make_geometry((2, 4, 9, 9), (4, 4, 1, 1))
    last = dense_problem("forward", g, np.dtype("f4"), True)
    assert POINTWISE.impossible(last) is None
    assert "no matrix" in POINTWISE.impossible(last._replace(channels_last=False))
