"""Forward pass and input gradient by indirection: each tap of each phase once."""

from itertools import product

import numpy as np
import pytest
from draws import lay_out, numbers

from convcore import engine
from convcore.backends import conv
from convcore.engine import reference
from convcore.engine.conv.indirect import correlation as indirect_correlation
from convcore.engine.conv.indirect.indirection import ROWS, counts_of
from convcore.engine.conv.problem import dense_problem
from convcore.engine.geometry import make_geometry
from convcore.engine.runtime import _isa

LAYER = (2, 16, 13, 11), (18, 16, 3, 2)
STEPS = [{}, {"stride": (2, 3), "padding": (1, 4)}, {"dilation": (1, 3), "padding": 2}]
SINGLE = np.dtype("f4")


@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "permuted", "strided"])
@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("pass_name", ["forward", "input_grad"])
def test_the_pass_is_exact_in_every_layout(pass_name, steps, layout, forced):
    plan = forced("indirect", pass_name, *LAYER, "float32", layout, **steps)
    assert plan.patches == 0


@pytest.mark.parametrize("steps", STEPS)
def test_phases_of_an_input_gradient_write_each_input_and_read_each_tap_once(steps):
    g = make_geometry(*LAYER, **steps)
    phases = indirect_correlation.row_phases_of(dense_problem("input_grad", g, SINGLE, False))
    taps = [tap for phase in phases for column in phase.taps for tap in column]
    assert sorted(taps) == list(product(range(1), range(3), range(2)))
    written = np.zeros((1, 13, 11), int)
    for phase in phases:
        at = zip(phase.out_first, phase.out_step, strict=True)
        part = written[tuple(slice(first, None, step) for first, step in at)]
        part += 1
        assert part.shape == tuple(counts_of(phase.lines))
        assert sum(column["count"] for column in phase.columns) == part.shape[2]
    assert (written == 1).all()


def test_a_forward_pass_has_all_taps_for_every_output():
    g = make_geometry(*LAYER, padding=1)
    (phase,) = indirect_correlation.row_phases_of(dense_problem("forward", g, SINGLE, False))
    assert phase.multiplied == g.pixels * g.taps
    assert counts_of(phase.lines) == [1, *g.output_shape[2:]]


@pytest.mark.parametrize("steps", [{}, {"stride": 2}, {"stride": (3, 2), "padding": 1}])
@pytest.mark.parametrize("pass_name", ["forward", "input_grad"])
def test_kernels_of_one_tap_are_exact_where_blocks_end_within_lines(pass_name, steps, forced):
    plan = forced(
        "indirect", pass_name, (3, 20, 29, 31), (18, 20, 1, 1), "float32", "channels_last", **steps
    )
    assert plan.block % ROWS == 0 < plan.block % 31


@pytest.mark.parametrize("layout", ["contiguous", "permuted", "strided"])
def test_blocks_whose_outputs_no_tap_meets_are_exact(layout, forced):
    # Every 16th output is met. The last block lies between two of these: it copies no columns.
    # A pointer to its first column overflows where columns are not adjacent in memory.
    layer = (1, 16, 1, 125), (16, 16, 1, 1), "float32", layout
    plan = forced("indirect", "input_grad", *layer, stride=(1, 16))
    first, last = 124 // plan.block * plan.block, 124
    assert all(output % 16 for output in range(first, last + 1))


@pytest.mark.parametrize(("step", "width"), [(3, 25), (3, 193), (8, 50)])
def test_blocks_without_an_output_of_some_class_are_exact(step, width, forced):
    # The last block has fewer pixels than the input gradient has classes of columns.
    shape = (2, 74, 1, width)
    layer = shape, (62, 74, 1, 1), "float32", "channels_last"
    forced("indirect", "input_grad", *layer, stride=(1, step))


def test_pixels_of_one_tap_are_cut_into_whole_tiles():
    g = make_geometry((1, 64, 28, 31), (16, 64, 1, 1))
    problem = dense_problem("forward", g, SINGLE, True)
    _, plan = indirect_correlation.correlation(problem, "indirect")
    assert plan.block % ROWS == 0
    assert plan.items >= indirect_correlation.ITEMS


def test_pixels_are_packed_where_their_channels_lie_apart():
    g = make_geometry(*LAYER)
    assert indirect_correlation.packs_input(dense_problem("forward", g, SINGLE, False))
    assert not indirect_correlation.packs_input(dense_problem("forward", g, SINGLE, True))
    assert indirect_correlation.most_seen(dense_problem("forward", g, SINGLE, True)) == 0
    assert indirect_correlation.most_seen(dense_problem("forward", g, SINGLE, False)) >= 13


@pytest.mark.parametrize(
    ("pair_words", "channels", "channels_last", "narrow", "bfloat16", "reason"),
    [
        (16, 64, True, False, False, "multiplied where they lie;"),
        (16, 64, False, False, False, "multiplied after lines are turned, once for all taps;"),
        (16, 64, True, True, False, "multiplied after lines are turned, once for all taps;"),
        (16, 64, True, True, True, "where they lie;"),
        (32, 64, True, True, True, "rounded once for all taps;"),
        (16, 48, True, True, True, "rounded once for all taps;"),
        (16, 64, False, True, True, "rounded once for all taps;"),
        (16, 64, True, False, True, "rounded once for all taps;"),
    ],
)
def test_reason_says_whether_pixels_are_packed(
    pair_words, channels, channels_last, narrow, bfloat16, reason, monkeypatch
):
    monkeypatch.setattr(_isa, "bfloat16_words", lambda: pair_words)
    g = make_geometry((2, channels, 9, 9), (64, channels, 3, 3))
    problem = dense_problem("forward", g, SINGLE, channels_last)._replace(narrow_left=narrow)
    plan = indirect_correlation.correlation(problem, "indirect", bfloat16)[1]
    assert reason in plan.reason
    assert ("bfloat16" in plan.reason) == bfloat16


@pytest.mark.parametrize("flipped", [(2,), (3,), (2, 3), (0,)])
@pytest.mark.parametrize("algorithm", ["indirect", "bfloat16"])
def test_weights_that_run_backwards_in_channels_last_are_exact(algorithm, flipped, rng):
    x, w = (numbers(rng, shape, "f4", integers=True) for shape in ((2, 33, 9, 8), (40, 33, 3, 2)))
    w = np.flip(lay_out(w, "channels_last", rng), flipped)
    with conv.flags(algorithm=algorithm):
        y = engine.conv_forward(x, w)
    np.testing.assert_array_equal(y, reference.conv_forward(x, w))


def test_prepacked_weights_are_the_callers_and_not_shared():
    g = make_geometry(*LAYER)
    problem = dense_problem("forward", g, SINGLE, True)
    plan = indirect_correlation.correlation(problem, "indirect")[1]
    prepacked = indirect_correlation.correlation(problem._replace(prepacked=True), "indirect")[1]
    assert plan.prepacked == prepacked.shared == 0
    assert prepacked.prepacked >= np.prod(LAYER[1])
