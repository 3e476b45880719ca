"""Convolutions of few input channels: over any geometry, number of threads and size of tile."""

from __future__ import annotations

import math

import numpy as np
import pytest
from draws import Case, axes, lay_out, numbers
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from convcore import engine
from convcore.backends import conv
from convcore.engine import reference
from convcore.engine.conv.few_channels import plan as few_channels
from convcore.engine.conv.plan import plan_conv
from convcore.engine.conv.problem import PASSES, Problem, dense_problem
from convcore.engine.geometry import Axis, Geometry, make_geometry
from convcore.engine.runtime import layout

CASES = 150
MOST_EPS = 4
NAME = few_channels.FEW_CHANNELS.name


@st.composite
def few(draw: st.DrawFn) -> Case:
    """Draw a convolution of 1 to 9 input channels, its rows long enough for several vectors."""
    all_axes = [draw(axes()) for _ in range(draw(st.sampled_from((1, 2, 2, 2, 3))))]
    last = all_axes[-1]
    size = last.size + draw(st.sampled_from((0, 7, 16, 40, 61)))
    all_axes[-1] = Axis(size, last.kernel, last.stride, last.dilation, last.before, last.after)
    formats = st.sampled_from(("contiguous", "channels_last"))
    return Case(
        n=draw(st.sampled_from((1, 2, 3))),
        groups=1,
        c_in=draw(st.integers(1, 9)),
        c_out=draw(st.one_of(st.integers(1, 40), st.sampled_from((48, 64, 70)))),
        axes=tuple(all_axes),
        dtype="float32",
        layouts=(draw(formats), draw(formats), draw(formats)),
        unbatched=False,
        bias=draw(st.booleans()),
        integers=draw(st.sampled_from((False, False, True))),
        draw=draw(st.integers(0, 2**32 - 1)),
    )


def compute(problem: Problem, left, right, threads: int = 1, extra=(), offset: int = 0):
    """Return the map by the kernel itself, its result and scratch full of NaN before.

    offset: bytes from an address of the result that is good for any vector.
    """
    assert few_channels.FEW_CHANNELS.impossible(problem) is None
    kernel, plan = few_channels.FEW_CHANNELS.prepare(problem)
    shape = problem.output.shape[:2] + problem.output.shape[-problem.geometry.rank :]
    memory = aligned(4 * math.prod(shape), offset).view(np.float32)
    if problem.channels_last:
        result = np.moveaxis(memory.reshape(shape[0], *shape[2:], shape[1]), -1, 1)
    else:
        result = memory.reshape(shape)
    workspace = aligned(plan.shared_bytes + threads * plan.scratch_bytes)
    kernel.run(left, right, result, workspace, threads, *extra)
    return result


def aligned(size: int, offset: int = 0) -> np.ndarray:
    """Return bytes that read as NaN, at `offset` from a multiple of 64."""
    memory = np.full(size + 128, 255, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    return memory[start : start + size]


def problem_of(pass_name: str, geometry: Geometry, left, right) -> Problem:
    """Return the problem of a map on two arrays."""
    arrays = (left, right)
    return Problem(
        pass_name,
        geometry,
        np.dtype(np.float32),
        *(layout.layout(a.shape, a.strides, a.itemsize) for a in arrays),
        any(layout.is_channels_last(a.shape, a.strides) for a in arrays),
    )


@examples(CASES)
@given(case=few())
def test_passes_agree_with_the_oracle_on_any_number_of_threads(case, seed):
    g, rng = case.geometry, np.random.default_rng([seed, case.draw])
    x, w, y = (
        lay_out(numbers(rng, shape, np.float32, integers=case.integers), name, rng)
        for shape, name in zip(
            (g.input_shape, g.weight_shape, g.output_shape), case.layouts, strict=True
        )
    )
    bias = numbers(rng, g.c_out, np.float32, integers=case.integers) if case.bias else None
    steps = case.steps
    passes = {
        "forward": (lambda x, w, b: reference.conv_forward(x, w, b, **steps), x, w, bias),
        "input_grad": (lambda y, w: reference.conv_input_grad(y, w, case.sizes, **steps), y, w),
        "weight_grad": (lambda x, y: reference.conv_weight_grad(x, y, case.kernel, **steps), x, y),
    }
    for name, (oracle, left, right, *extra) in passes.items():
        problem = problem_of(name, g, left, right)
        if few_channels.FEW_CHANNELS.impossible(problem):
            continue
        result = compute(problem, left, right, 1, extra)
        exact = oracle(left, right, *extra)
        bound = oracle(*(None if a is None else np.abs(a) for a in (left, right, *extra)))
        error = reference.error_in_eps(result, exact, bound, "float32")
        assert error <= (0 if case.integers else MOST_EPS), name
        for threads in (2, 3, 7):
            again = compute(problem, left, right, threads, extra)
            assert again.tobytes("A") == result.tobytes("A"), (name, threads)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize(
    "shape, kernel, stride",
    [
        ((1, 1, 1, 2500), (1, 10), 5),  # rows cut into several tiles
        ((1, 3, 90, 41), (7, 7), 2),  # several tiles of rows, a last one shorter
        ((2, 8, 40, 700), (9, 3), 1),  # a band that does not fit with as many rows
        ((1, 2, 6, 40), (2, 2), 5),  # inputs between the patches that no output looks at
    ],
)
def test_tiles_agree_with_the_oracle(shape, kernel, stride, channels_last, rng):
    x = rng.standard_normal(shape, np.float32)
    w = rng.standard_normal((5, shape[1], *kernel), np.float32)
    if channels_last:
        x = lay_out(x, "channels_last", rng)
    y = reference.conv_forward(x, w, stride=stride, padding=1).astype(np.float32)
    y = lay_out(y, "channels_last" if channels_last else "contiguous", rng)
    sizes = shape[2:]
    with conv.flags(algorithm=NAME):
        for of, arrays in (
            (lambda o, x, w: o.conv_forward(x, w, stride=stride, padding=1), (x, w)),
            (lambda o, y, w: o.conv_input_grad(y, w, sizes, stride=stride, padding=1), (y, w)),
            (lambda o, x, y: o.conv_weight_grad(x, y, kernel, stride=stride, padding=1), (x, y)),
        ):
            result, exact = of(engine, *arrays), of(reference, *arrays)
            bound = of(reference, *map(np.abs, arrays))
            assert reference.error_in_eps(result, exact, bound, "float32") <= MOST_EPS


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("columns", [48, 45])  # 45: rows begin within a vector
def test_streamed_output_has_the_bits_of_a_stored_one(columns, channels_last, rng, monkeypatch):
    geometry = Geometry(2, 3, 32, 1, (Axis(20, 3, 1, 1, 1, 1), Axis(columns, 3, 1, 1, 1, 1)))
    problem = dense_problem("forward", geometry, np.dtype(np.float32), channels_last)
    name = "channels_last" if channels_last else "contiguous"
    x = lay_out(rng.standard_normal(geometry.input_shape, np.float32), name, rng)
    w = lay_out(rng.standard_normal(geometry.weight_shape, np.float32), name, rng)
    stored = compute(problem, x, w)
    monkeypatch.setattr(few_channels, "STREAMED", 0)
    for offset in (0, 4):  # where a vector may be streamed, and where it may not
        np.testing.assert_array_equal(compute(problem, x, w, 3, offset=offset), stored)


@pytest.mark.parametrize("name", ["contiguous", "channels_last"])
def test_infinity_stays_under_its_taps(name, rng):
    steps = {"stride": 2, "padding": 1}
    x = rng.standard_normal((1, 3, 9, 37), np.float32)
    w = rng.standard_normal((5, 3, 3, 3), np.float32)
    y = reference.conv_forward(x, w, **steps).astype(np.float32)
    finite_y = lay_out(y.copy(), name, rng)
    x[0, 1, 4, 36] = np.inf
    y[0, 2, 2, 18] = np.inf
    x, w, y = (lay_out(a, name, rng) for a in (x, w, y))
    with conv.flags(algorithm=NAME), np.errstate(invalid="ignore"):
        for of, arrays in (
            (lambda o, x, w: o.conv_forward(x, w, **steps), (x, w)),
            (lambda o, y, w: o.conv_input_grad(y, w, (9, 37), **steps), (y, w)),
            (lambda o, x, y: o.conv_weight_grad(x, y, 3, **steps), (x, finite_y)),
        ):
            finite = np.isfinite(of(reference, *arrays))
            assert 0 < finite.sum() < finite.size
            np.testing.assert_array_equal(np.isfinite(of(engine, *arrays)), finite)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize(
    "n, c, size, o, kernel, stride, padding",
    [
        (8, 3, 224, 64, 7, 2, 3),
        (2, 3, 224, 64, 3, 1, 1),
        (64, 1, 28, 32, 5, 1, 2),
        (8, 3, 224, 32, 3, 2, 1),
        (64, 1, 32, 6, 5, 1, 0),
        (64, 1, 28, 10, 5, 1, 0),
        (1, 3, 224, 64, 11, 4, 2),
    ],
)
def test_first_layers_are_planned_within_the_limits(
    n, c, size, o, kernel, stride, padding, channels_last
):
    geometry = engine.make_geometry((n, c, size, size), (o, c, kernel, kernel), stride, padding)
    plan = plan_conv(geometry, "float32", channels_last)
    for name in PASSES:
        a_map = getattr(plan, name)
        assert a_map.algorithm == NAME
        assert a_map.scratch_bytes <= 8 << 20
        most = 32 << 20 if name == "weight_grad" else 16 * math.prod(geometry.weight_shape)
        assert a_map.shared_bytes <= max(most, 4096)


@pytest.mark.parametrize(
    "pass_name, c, dtype, groups, reason",
    [
        ("forward", 3, "float64", 1, "float32"),
        ("forward", 4, "float32", 2, "group"),
        ("weight_grad", 40, "float32", 1, "channels"),
        ("input_grad", 3, "float32", 1, "mostly empty"),
    ],
)
def test_refusal_says_why(pass_name, c, dtype, groups, reason):
    # Rows of one output: few for the narrowest vectors, too.
    geometry = engine.make_geometry((1, c, 4, 3), (20, c // groups, 3, 3), groups=groups)
    plan = getattr(plan_conv(geometry, dtype), pass_name)
    assert plan.algorithm != NAME
    assert reason in dict(plan.refused)[NAME]


def test_long_sums_are_left_to_what_adds_in_blocks(rng):
    """Its sums are one chain each, whose errors grow where all numbers have one sign."""
    for channels, refused in ((113, False), (114, True)):  # of 9 products: 1,017 and 1,026
        geometry = make_geometry((1, channels, 4, 4), (2, channels, 3, 3))
        x, w = (np.ones(shape, "f") for shape in (geometry.input_shape, geometry.weight_shape))
        reason = few_channels.FEW_CHANNELS.impossible(problem_of("forward", geometry, x, w))
        assert (reason is not None and "products in one sum" in reason) == refused
    with conv.flags(algorithm=NAME):
        x, w = (rng.random(shape).astype("f") for shape in ((1, 512, 7, 7), (8, 512, 3, 3)))
        found = engine.conv2d(x, w)
    exact = engine.conv2d(x.astype("d"), w.astype("d"))
    assert np.abs(found - exact).max() / exact.max() <= 12 * np.finfo("f").eps
