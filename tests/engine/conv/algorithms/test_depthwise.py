"""Depthwise layers: right in every form, at every width and level, with the same bits always."""

import numpy as np
import pytest
from direct_checks import (
    check_integers,
    check_nan,
    check_threads,
    chosen,
    errors_of_a_child,
    largest_errors,
)

from convcore import engine
from convcore.engine.runtime import _isa

MOST_EPS = 4
# Channels below a vector's, a whole number of vectors, and neither.
GROUPS = [(n, 1, 1) for n in (2, 5, 16, 19, 32, 40)]
# Kernel, stride and padding with loops of their own, and some without.
FORMS = [(3, 1, 1), (3, 2, 1), (5, 1, 2), (5, 2, 2), (7, 1, 3), (3, 1, 0), (3, 2, 0), (4, 3, 2)]
# Rows shorter than a vector, of whole vectors, and with every awkward rest.
WIDTHS = (1, 2, 5, 7, 8, 9, 14, 15, 16, 17, 18, 28, 31, 32, 33, 34, 49)
# Sizes, kernel, stride and padding: slices that see one, several and no slices; long windows, whose
# taps fall on padding alone in part; and lines.
SHAPES = [
    ((5, 9, 17), (3, 3, 3), 1, 1),
    ((6, 7, 8), (5, 3, 3), 1, (2, 1, 1)),
    ((4, 9, 18), (1, 5, 5), 1, (0, 2, 2)),
    ((5, 11, 11), (3, 3, 3), 2, 1),
    ((5, 9, 17), (3, 3, 3), (1, 2, 2), 1),
    ((4, 8, 20), (1, 3, 3), (2, 1, 1), (0, 1, 1)),
    ((2, 6, 6), (2, 3, 3), 1, (4, 1, 1)),
    ((14, 15), (51, 5), 1, (25, 2)),
    ((7, 28), (5, 51), 1, (2, 25)),
    ((9, 30), (3, 21), 2, (1, 10)),
    ((33,), (3,), 1, 1),
    ((100,), (70,), 1, 35),
    ((100,), (11,), 3, 5),
]


def layer(kernel, stride, padding, channels, height, width, n=2):
    return {
        "input": (n, channels, height, width),
        "weight": (channels, 1, kernel, kernel),
        "steps": {"stride": stride, "padding": padding, "groups": channels},
    }


def test_depthwise_agrees_with_the_oracle(seed):
    errors = largest_errors("depthwise", GROUPS, seed, 120)
    assert max(errors.values()) < MOST_EPS, errors


@pytest.mark.subprocess
@pytest.mark.parametrize("level", _isa.names()[:-1])  # the last is tested in this process
def test_depthwise_agrees_at_every_instruction_set(run_child, seed, level):
    errors = errors_of_a_child(run_child, level, "depthwise", GROUPS, seed)
    assert max(errors.values()) < MOST_EPS, errors


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize(("kernel", "stride", "padding"), FORMS)
def test_depthwise_integers_are_exact_at_every_width(rng, kernel, stride, padding, channels_last):
    for width in WIDTHS:
        for height in (7, 11):
            if width + 2 * padding >= kernel:
                check_integers(
                    layer(kernel, stride, padding, 21, height, width), rng, channels_last
                )


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize(("kernel", "stride", "padding"), FORMS)
def test_depthwise_nan_stays_where_it_is_seen(rng, kernel, stride, padding, channels_last):
    for width in (7, 13, 17, 30):
        check_nan(layer(kernel, stride, padding, 18, 9, width), rng, channels_last)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize(("kernel", "stride", "padding"), FORMS)
def test_depthwise_bits_do_not_depend_on_threads(
    rng, threads, kernel, stride, padding, channels_last
):
    check_threads(
        layer(kernel, stride, padding, 40, 63, 61, n=3 * stride), rng, channels_last, threads
    )


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize(("size", "kernel", "stride", "padding"), SHAPES)
def test_depthwise_of_any_rank_and_length_is_direct_and_right(
    rng, threads, size, kernel, stride, padding, channels_last
):
    for channels in (3, 37):
        layer = {
            "input": (2, channels, *size),
            "weight": (channels, 1, *kernel),
            "steps": {"stride": stride, "padding": padding, "groups": channels},
        }
        g = engine.make_geometry(layer["input"], layer["weight"], **layer["steps"])
        plan = engine.plan_conv(g, "float32", channels_last)
        for one in (plan.forward, plan.input_grad, plan.weight_grad):
            assert (one.algorithm, one.patches) == ("depthwise", 0)
        check_integers(layer, rng, channels_last)
        check_nan(layer, rng, channels_last)
        check_threads(layer, rng, channels_last, threads)


def test_depthwise_long_windows_of_one_sign_stay_accurate(rng):
    x = rng.random((1, 3, 1200), np.float32)
    w = rng.random((3, 1, 600), np.float32)
    y = engine.conv_forward(x, w, groups=3)
    exact = [
        np.correlate(a.astype(float), b[0].astype(float)) for a, b in zip(x[0], w, strict=True)
    ]
    assert np.abs(y[0] - exact).max() < MOST_EPS * 2**-23 * np.max(exact)


@pytest.mark.parametrize("channels_last", [False, True])
def test_depthwise_layers_are_done_without_a_gemm(channels_last):
    for kernel, stride, padding in FORMS:
        layers = layer(kernel, stride, padding, 24, 20, 20)
        assert set(chosen(layers, channels_last).values()) == {"depthwise"}


def test_depthwise_rows_of_one_image_are_cut_into_equal_items():
    g = engine.make_geometry((1, 192, 28, 28), (192, 1, 3, 3), 2, 1, groups=192)
    plan = engine.plan_conv(g, "float32", channels_last=True).forward
    assert (plan.algorithm, plan.items, plan.block) == ("depthwise", 2, 8 * 14)


@pytest.mark.parametrize(
    ("shape", "kernel", "stride", "channels_last", "cuts"),
    [
        ((1, 96, 112, 112), 3, 1, False, [(48, 112 * 112, 2), (48, 112 * 112, 2)]),
        ((4, 1024, 14, 14), 3, 1, False, [(28, 14 * 14, 147), (28, 14 * 14, 147)]),
        ((2, 512, 28, 28), 5, 2, False, [(8, 14 * 14, 128), (26, 28 * 28, 40)]),
        ((4, 1024, 14, 14), 3, 1, True, [(32, 8 * 14, 256), (32, 8 * 14, 256)]),
        ((2, 512, 28, 28), 5, 2, True, [(8, 8 * 14, 256), (16, 8 * 28, 256)]),
    ],
)
def test_depthwise_items_are_some_channels_of_some_rows(shape, kernel, stride, channels_last, cuts):
    channels = shape[1]
    weight = channels, 1, kernel, kernel
    g = engine.make_geometry(shape, weight, stride, kernel // 2, groups=channels)
    plan = engine.plan_conv(g, "float32", channels_last)
    found = [(p.items, p.block, p.o_block) for p in (plan.forward, plan.input_grad)]
    assert found == cuts


def test_depthwise_long_sums_of_one_sign_stay_accurate(rng):
    # Rounding errors of positive terms grow with the number that is added in one go.
    for channels_last in (False, True):
        x = rng.random((6, 112, 112, 32), np.float32).transpose(0, 3, 1, 2)
        x = x if channels_last else np.ascontiguousarray(x)
        gw = engine.conv_weight_grad(x, np.ones_like(x), (3, 3), padding=1, groups=32)
        wide = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
        for i in range(3):
            for j in range(3):
                sums = wide[:, :, i : i + 112, j : j + 112].sum((0, 2, 3))
                assert np.abs(gw[:, 0, i, j] - sums).max() < MOST_EPS * 2**-23 * sums.max()
