"""Every algorithm by itself: right, and the same bits for any number of threads.

An algorithm that is added to the list is tested here by being in the list.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from draws import Case, lay_out, numbers
from hypothesis import example, given
from hypothesis import strategies as st
from properties import examples

from convcore import engine
from convcore.backends import conv
from convcore.engine import reference
from convcore.engine.conv.algorithms import ALGORITHMS
from convcore.engine.conv.call import CallPlan
from convcore.engine.geometry import Axis
from convcore.engine.runtime import layout, memory
from convcore.verify.checks import MOST_EPS

CASES = 120
# Below so many channels a group, integers stay exact by every algorithm.
EXACT_CHANNELS = 16
BIG = 19  # output pixels a side that make several blocks of every algorithm


@st.composite
def likely(draw: st.DrawFn) -> Case:
    """Draw a 2-d convolution of a kind that some algorithm is made for."""
    c_group, o_group, groups = draw(
        st.sampled_from(
            [
                *((1, 1, 1), (1, 1, 5), (1, 1, 35), (1, 2, 17), (3, 20, 1), (4, 4, 3), (8, 9, 2)),
                *((16, 17, 1), (20, 16, 2), (33, 70, 1), (17, 3, 1)),
            ]
        )
    )
    kernel = draw(st.sampled_from([(1, 1), (3, 3), (3, 3), (5, 5), (2, 3), (7, 7), (1, 3)]))
    stride = draw(st.sampled_from([(1, 1), (1, 1), (2, 2), (2, 1), (3, 3)]))
    dilation = draw(st.sampled_from([1, 1, 1, 2]))
    size = draw(st.sampled_from([1, 4, 7, 8, 13, BIG]))
    axes = []
    for k, s, more in zip(kernel, stride, (0, 1), strict=True):
        extent = dilation * (k - 1) + 1
        before = draw(st.sampled_from([extent // 2, extent // 2, 0, extent]))
        after = draw(st.sampled_from([before, before, 1]))
        at_least = max(1, extent - before - after)
        axes.append(Axis(max(size + more, at_least), k, s, dilation, before, after))
    layouts = st.sampled_from(["contiguous", "channels_last"] * 3 + ["strided", "permuted"])
    return Case(
        n=draw(st.sampled_from([1, 2, 3, 5])),
        groups=groups,
        c_in=groups * c_group,
        c_out=groups * o_group,
        axes=tuple(axes),
        dtype=draw(st.sampled_from(["float32", "float32", "float32", "float64"])),
        layouts=(draw(layouts), draw(layouts), draw(layouts)),
        unbatched=False,
        bias=draw(st.booleans()),
        integers=draw(st.sampled_from([False, False, True])),
        draw=draw(st.integers(0, 2**32 - 1)),
    )


def plain(c_in, c_out, groups, kernel, stride, layout) -> Case:
    """Return a convolution of images, padded on all sides alike."""
    axes = [Axis(size, kernel, stride, 1, kernel // 2, kernel // 2) for size in (13, 14)]
    return Case(
        n=2,
        groups=groups,
        c_in=c_in,
        c_out=c_out,
        axes=tuple(axes),
        dtype="float32",
        layouts=(layout,) * 3,
        unbatched=False,
        bias=True,
        integers=False,
        draw=1,
    )


def patches(layout) -> Case:
    """Return a convolution whose kernel is a multiple of its stride."""
    axes = Axis(13, 3, 2, 1, 1, 1), Axis(16, 8, 4, 1, 4, 0)
    return dataclasses.replace(plain(3, 20, 1, 1, 1, layout), axes=axes)


@pytest.fixture
def chosen(monkeypatch):
    """Return a list that gets each call's plan, and whether three threads gave the same bits."""
    seen = []

    def call(self, left, right, extra, run=CallPlan.__call__):
        result = run(self, left, right, extra)
        # Not by set_num_threads: as small as these are, they would run on one thread.
        again = layout.empty(self.shape, left.dtype, self.channels_last)
        block = memory.take(self.plan.shared_bytes + 3 * self.plan.scratch_bytes)
        # All ones is a NaN: it shows where something is read that was not written.
        np.frombuffer(block, np.uint8).fill(255)
        again.fill(np.nan)
        self.kernel.run(left, right, again, block, 3, *extra)
        memory.give(block)
        seen.append((self.plan, again.tobytes("A") == result.tobytes("A")))
        return result

    monkeypatch.setattr(CallPlan, "__call__", call)
    return seen


def passes_of(case, seed):
    """Yield, for each pass, (compute, arrays): compute(engine or oracle, *arrays)."""
    g, rng = case.geometry, np.random.default_rng([seed, case.draw])
    x, w, y = (
        lay_out(numbers(rng, shape, case.dtype, integers=case.integers), name, rng)
        for shape, name in zip(
            (g.input_shape, g.weight_shape, g.output_shape), case.layouts, strict=True
        )
    )
    bias = numbers(rng, g.c_out, case.dtype, integers=case.integers) if case.bias else None
    steps = case.steps
    yield lambda o, x, w, b: o.conv_forward(x, w, b, **steps), (x, w, bias)
    yield lambda o, y, w: o.conv_input_grad(y, w, case.sizes, **steps), (y, w)
    yield lambda o, x, y: o.conv_weight_grad(x, y, case.kernel, **steps), (x, y)


def as_multiplied(arrays, rounds):
    """Return the arrays of a pass, the factors rounded to bfloat16 if they are; not the bias."""
    factors, rest = arrays[:2], arrays[2:]
    return (*(map(reference.rounded_to_bfloat16, factors) if rounds else factors), *rest)


def as_is(array):
    return array


def size(array):
    return None if array is None else np.abs(array)


def test_algorithm_agrees_with_the_oracle_and_itself(chosen, threads, seed):
    threads(1)
    taken = set()

    # Between them they take each algorithm, however few are drawn.
    @example(case=plain(16, 17, 1, 3, 1, "contiguous"))
    @example(case=plain(16, 17, 1, 3, 1, "channels_last"))
    @example(case=plain(35, 35, 35, 3, 1, "contiguous"))
    @example(case=plain(35, 35, 35, 3, 1, "channels_last"))
    @example(case=plain(12, 12, 3, 3, 1, "contiguous"))
    @example(case=plain(3, 20, 1, 5, 2, "contiguous"))
    @example(case=plain(33, 70, 1, 1, 1, "channels_last"))
    @example(case=patches("contiguous"))
    @example(case=patches("channels_last"))
    @examples(CASES)
    @given(case=likely())
    def check(case):
        for compute, arrays in passes_of(case, seed):
            taken.update(check_pass(case, compute, arrays, chosen))

    check()
    assert taken == {algorithm.name for algorithm in ALGORITHMS}


def check_pass(case, compute, arrays, chosen):
    """Compare each algorithm with the oracle; yield the names of those that were taken."""
    expected = {
        rounds: [
            compute(reference, *map(of, as_multiplied(arrays, rounds))) for of in (as_is, size)
        ]
        for rounds in (False, True)
    }
    for algorithm in ALGORITHMS:
        with conv.flags(algorithm=algorithm.name):
            result = compute(engine, *arrays)
        plan, same_bits = chosen.pop()
        assert same_bits, plan
        if plan.algorithm == algorithm.name:
            yield algorithm.name
            error = reference.error_in_eps(result, *expected[algorithm.rounds], case.dtype)
            least = min(case.c_in, case.c_out) // case.groups
            exactly = case.integers and (algorithm.direct or least < EXACT_CHANNELS)
            assert error <= (0 if exactly else MOST_EPS[algorithm.direct]), plan


@pytest.mark.parametrize("dilation", [14, 15, 18, 24, 40])
def test_far_dilations_are_right(rng, dilation):
    """Taps further apart than the buffers of a strip: the atrous layers of segmentation nets."""
    x = rng.standard_normal((1, 32, 50, 50), np.float32)
    w = rng.standard_normal((32, 32, 3, 3), np.float32)
    steps = {"dilation": dilation, "padding": dilation}
    exact_y = reference.conv_forward(x, w, **steps)
    exact_gx = reference.conv_input_grad(x, w, (50, 50), **steps)
    exact_gw = reference.conv_weight_grad(x, x, (3, 3), **steps)
    for image in (x, np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)):
        y = engine.conv_forward(image, w, **steps)
        np.testing.assert_allclose(y, exact_y, atol=1e-3)
        gx = engine.conv_input_grad(image, w, (50, 50), **steps)
        np.testing.assert_allclose(gx, exact_gx, atol=1e-3)
        gw = engine.conv_weight_grad(image, image, (3, 3), **steps)
        np.testing.assert_allclose(gw, exact_gw, atol=1e-2)


def test_inputs_that_no_output_sees_have_no_gradient():
    grad = np.ones((3, 80, 2, 23), np.float32)
    weight = np.ones((80, 16, 1, 1), np.float32)
    steps = {"stride": (12, 2), "padding": [(1, 7), (30, 7)], "dilation": (7, 2)}
    found = engine.conv_input_grad(grad, weight, (5, 8), **steps)
    exact = reference.conv_input_grad(grad, weight, (5, 8), **steps)
    np.testing.assert_array_equal(found, exact)
