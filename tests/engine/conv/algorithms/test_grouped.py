"""Grouped layers of few channels a group: right at every width and level, the same bits always."""

import pytest
from direct_checks import (
    check_integers,
    check_nan,
    check_threads,
    chosen,
    errors_of_a_child,
    largest_errors,
)

from convcore import backends
from convcore.engine.runtime import _isa

MOST_EPS = 4
# Groups, and channels read and made of one: multipliers, blocks of four and their rests.
GROUPS = [(3, 4, 4), (17, 1, 2), (2, 8, 5), (5, 3, 1), (2, 6, 7), (9, 2, 2), (2, 16, 16)]
FORMS = [(3, 1, 1), (3, 2, 1), (5, 2, 2), (1, 1, 0), (2, 3, 1)]
WIDTHS = (1, 3, 7, 8, 14, 15, 16, 17, 28, 33)


def layer(kernel, stride, padding, groups, height, width, n=2):
    number, c, o = groups
    return {
        "input": (n, number * c, height, width),
        "weight": (number * o, c, kernel, kernel),
        "steps": {"stride": stride, "padding": padding, "groups": number},
    }


def test_grouped_agrees_with_the_oracle(seed):
    errors = largest_errors("grouped", GROUPS, seed, 80)
    assert max(errors.values()) < MOST_EPS, errors


@pytest.mark.subprocess
@pytest.mark.parametrize("level", _isa.names()[:-1])  # the last is tested in this process
def test_grouped_agrees_at_every_instruction_set(run_child, seed, level):
    errors = errors_of_a_child(run_child, level, "grouped", GROUPS, seed)
    assert max(errors.values()) < MOST_EPS, errors


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize(("kernel", "stride", "padding"), FORMS)
def test_grouped_integers_are_exact_at_every_width(rng, kernel, stride, padding, channels_last):
    with backends.conv.flags(algorithm="grouped"):
        for width in WIDTHS:
            groups = GROUPS[width % len(GROUPS)]
            if width + 2 * padding >= kernel:
                check_integers(layer(kernel, stride, padding, groups, 9, width), rng, channels_last)


@pytest.mark.parametrize("channels_last", [False, True])
def test_grouped_nan_stays_where_it_is_seen(rng, channels_last):
    with backends.conv.flags(algorithm="grouped"):
        for kernel, stride, padding in FORMS:
            for width in (7, 17):
                check_nan(layer(kernel, stride, padding, (5, 4, 3), 8, width), rng, channels_last)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize(("kernel", "stride", "padding"), FORMS)
def test_grouped_bits_do_not_depend_on_threads(
    rng, threads, kernel, stride, padding, channels_last
):
    with backends.conv.flags(algorithm="grouped"):
        check_threads(
            layer(kernel, stride, padding, (10, 4, 6), 40, 39, n=2 * stride), rng, channels_last,
            threads,
        )  # fmt: skip


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding"),
    [
        ((5, 9, 17), (3, 3, 3), 1, 1),
        ((5, 11, 11), (3, 3, 3), 2, 1),
        ((6, 7, 8), (2, 3, 5), (2, 1, 1), (1, 1, 2)),
        ((2, 6, 6), (2, 3, 3), 1, (4, 1, 1)),
        ((50,), (9,), 1, 4),
    ],
)
def test_grouped_of_any_rank_is_direct_and_right(
    rng, threads, size, kernel, stride, padding, channels_last
):
    for number, c, o in ((6, 4, 4), (3, 2, 5)):
        layer = {
            "input": (2, number * c, *size),
            "weight": (number * o, c, *kernel),
            "steps": {"stride": stride, "padding": padding, "groups": number},
        }
        with backends.conv.flags(algorithm="grouped"):
            assert set(chosen(layer, channels_last).values()) == {"grouped"}
            check_integers(layer, rng, channels_last)
            check_nan(layer, rng, channels_last)
            check_threads(layer, rng, channels_last, threads)


@pytest.mark.parametrize("channels_last", [False, True])
def test_grouped_leaves_wide_groups_and_single_taps_to_a_gemm(channels_last):
    few = chosen(layer(3, 1, 1, (8, 4, 4), 28, 28), channels_last)
    assert set(few.values()) == {"grouped"}
    for channels in (16, 32):
        many = chosen(layer(3, 1, 1, (2, channels, channels), 28, 28), channels_last)
        assert "grouped" not in many.values()
        assert channels == 32 or set(many.values()) == {"indirect"}
    assert chosen(layer(1, 1, 0, (8, 4, 4), 28, 28), channels_last)["weight_grad"] != "grouped"
