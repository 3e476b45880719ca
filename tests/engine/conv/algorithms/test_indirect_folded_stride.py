"""A stride folded into channels: the same numbers in the same memory, under fewer taps."""

import numpy as np
import pytest

from convcore import engine
from convcore.backends import conv
from convcore.engine.conv.indirect import folded_stride
from convcore.engine.conv.indirect.folded_stride import FOLDED_STRIDE
from convcore.engine.conv.problem import PASSES, dense_problem
from convcore.engine.geometry import make_geometry

LAYERS = [
    ((2, 1, 96), (20, 1, 32), {"stride": 8}),
    ((1, 3, 96), (20, 3, 16), {"stride": 8, "padding": 8}),
    ((2, 3, 16, 24), (20, 3, 8, 8), {"stride": 8}),
    ((2, 3, 13, 20), (9, 3, 3, 8), {"stride": (2, 4), "padding": [(1, 2), (4, 7)]}),
    ((2, 1, 5, 9, 24), (8, 1, 3, 2, 8), {"stride": (1, 2, 8), "padding": (1, 0, 0)}),
]


@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
@pytest.mark.parametrize("pass_name", PASSES)
@pytest.mark.parametrize(("x_shape", "w_shape", "steps"), LAYERS)
def test_every_pass_is_exact(x_shape, w_shape, steps, pass_name, layout, forced):
    # Arrays of one spatial axis have one format.
    layout = "contiguous" if len(x_shape) == 3 else layout
    if pass_name == "input_grad" and layout == "contiguous" and x_shape[1] > 1:
        pytest.skip("each channel would be multiplied with the weights of all")
    forced("folded_stride", pass_name, x_shape, w_shape, "float32", layout, **steps)


def test_the_bias_of_each_direction_is_a_channels_own(rng):
    x, w = rng.standard_normal((2, 5, 6), np.float32), rng.standard_normal((5, 1, 32), np.float32)
    steps, bias = {"stride": 8}, rng.standard_normal(5, np.float32)
    with conv.flags(algorithm="folded_stride"):
        y = engine.conv_transpose(x, w, bias[:1], **steps)
        np.testing.assert_allclose(y, engine.conv_transpose(x, w, **steps) + bias[0], atol=1e-5)
        z = engine.conv_forward(y, w, bias, **steps, activation="relu")
        plain = engine.conv_forward(y, w, **steps)
    np.testing.assert_allclose(z, np.maximum(plain + bias[:, None], 0), atol=1e-4)


@pytest.mark.parametrize("layout", [False, True])
def test_bits_do_not_depend_on_threads(rng, threads, layout):
    x, w = rng.standard_normal((4, 3, 64, 64), np.float32), np.ones((64, 3, 16, 16), np.float32)
    if layout:
        x = np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    g = engine.make_geometry(x.shape, w.shape, stride=16)
    gy = rng.standard_normal(g.output_shape, np.float32)
    results = []
    with conv.flags(algorithm="folded_stride"):
        for count in (1, 2, 5):
            threads(count)
            results.append(
                (
                    engine.conv_forward(x, w, stride=16).tobytes(),
                    engine.conv_input_grad(gy, w[:, :1], (64, 64), stride=16).tobytes(),
                    engine.conv_weight_grad(x, gy, (16, 16), stride=16).tobytes(),
                )
            )
    assert results[0] == results[1] == results[2]


def test_filter_banks_and_patch_embeddings_take_it():
    bank = engine.make_geometry((1, 1, 8192), (1026, 1, 1024), stride=256)
    patches = engine.make_geometry((2, 3, 64, 64), (768, 3, 16, 16), stride=16)
    for g, last, names in ((bank, False, PASSES), (patches, True, PASSES)):
        plan = engine.plan_conv(g, "float32", channels_last=last)
        assert {getattr(plan, name).algorithm for name in names} == {"folded_stride"}
    stem = engine.make_geometry((2, 3, 64, 64), (96, 3, 4, 4), stride=4)
    assert engine.plan_conv(stem, "float32").forward.algorithm != "folded_stride"


@pytest.mark.parametrize(
    ("x_shape", "w_shape", "steps", "reason"),
    [
        ((1, 1, 64), (8, 1, 8), {}, "a stride of 1: nothing to fold"),
        ((1, 1, 64), (8, 1, 9), {"stride": 8}, "its last axis is not whole strides of 8"),
        ((1, 1, 65), (8, 1, 8), {"stride": 8}, "its last axis is not whole strides of 8"),
        ((1, 1, 64), (8, 1, 8), {"stride": 8, "padding": 3}, "its last axis is not whole strides"),
        ((1, 2, 64), (8, 1, 8), {"stride": 8, "groups": 2}, "it knows one group only"),
        ((1, 2, 8, 8, 8), (8, 2, 4, 4, 4), {"stride": 4}, "no axis is left for the channels"),
        ((0, 1, 64), (8, 1, 8), {"stride": 8}, "an empty array"),
    ],
)
def test_what_cannot_be_folded_is_refused_with_the_reason(x_shape, w_shape, steps, reason):
    g = make_geometry(x_shape, w_shape, **steps)
    found = FOLDED_STRIDE.impossible(dense_problem("forward", g, np.dtype("f4"), False))
    assert found is not None and found.startswith(reason)


def test_what_indirect_refuses_once_it_is_folded_is_refused():
    """A single channel of the output, where vectors are long."""
    g = make_geometry((1, 1, 64), (1, 1, 8), stride=8)
    problem = dense_problem("forward", g, np.dtype("f4"), False)
    expected = folded_stride.INDIRECT.impossible(folded_stride._folded(problem))
    assert FOLDED_STRIDE.impossible(problem) == expected


@pytest.mark.parametrize("side", ["left", "right"])
def test_arrays_with_gaps_are_refused(side):
    g = make_geometry((2, 1, 96), (20, 1, 32), stride=8)
    for name in PASSES:
        problem = dense_problem(name, g, np.dtype("f4"), False)
        array = getattr(problem, side)
        apart = array._replace(strides=tuple(2 * s for s in array.strides))
        is_output = (name, side) in (("input_grad", "left"), ("weight_grad", "right"))
        assert (FOLDED_STRIDE.impossible(problem._replace(**{side: apart})) is None) == is_output
