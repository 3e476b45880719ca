"""PrepackedConvolution: what conv_forward returns, from weights that are packed once."""

from __future__ import annotations

import random
import threading

import numpy as np
import pytest

from convcore import backends, engine
from convcore.engine import reference
from convcore.engine.conv.call import cached_plan
from convcore.engine.conv.prepacked import MOST_SHAPES, PrepackedConvolution
from convcore.engine.conv.problem import FORWARD
from convcore.engine.conv.selection import current
from convcore.engine.conv.winograd import plan as winograd
from convcore.engine.runtime import memory

EPS = {"float32": 2.0**-23, "float64": 2.0**-52, "complex64": 2.0**-23}
MOST_EPS = 12


def in_format(array: np.ndarray, channels_last: bool) -> np.ndarray:
    if not channels_last:
        return np.ascontiguousarray(array)
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1)


def error(y: np.ndarray, x: np.ndarray, w: np.ndarray, **steps: object) -> float:
    exact = reference.conv_forward(x, w, **steps)
    scale = reference.conv_forward(np.abs(x), np.abs(w), **steps)
    return float(np.abs(y - exact).max(initial=0) / scale.max(initial=1e-30) / EPS[str(y.dtype)])


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize(
    ("algorithm", "n", "c", "o", "size", "kernel", "stride", "groups"),
    [
        ("winograd", 1, 64, 80, 14, 3, 1, 1),  # few tiles: each block of channels by itself
        ("winograd", 4, 48, 70, 30, 3, 1, 1),  # many
        ("winograd", 2, 40, 66, 15, 3, 1, 2),
        ("winograd", 1, 32, 40, 16, 5, 2, 1),
        ("indirect", 1, 96, 300, 7, 3, 1, 1),  # few pixels
        ("indirect", 3, 64, 130, 30, 3, 2, 1),
        ("indirect", 2, 1100, 64, 9, 1, 2, 1),  # in parts
        ("indirect", 2, 40, 72, 9, 3, 1, 2),
        ("im2col", 2, 20, 30, 9, 3, 1, 1),
        ("depthwise", 2, 24, 24, 9, 3, 1, 24),
        ("few_channels", 2, 3, 16, 20, 7, 2, 1),
        ("grouped", 2, 32, 32, 9, 3, 1, 8),
    ],
)
def test_agrees_with_the_oracle(
    rng, algorithm, n, c, o, size, kernel, stride, groups, channels_last
):
    steps = {"stride": stride, "padding": kernel // 2, "groups": groups}
    x = in_format(rng.standard_normal((n, c, size, size)).astype("f4"), channels_last)
    w = in_format(rng.standard_normal((o, c // groups, kernel, kernel)).astype("f4"), channels_last)
    bias = rng.standard_normal(o).astype("f4")
    with backends.conv.flags(algorithm=algorithm):
        fixed = PrepackedConvolution(w, bias, activation="relu", **steps)
        first, second = fixed(x), fixed(x)
        plain = PrepackedConvolution(w, **steps)(x)
    assert error(plain, x, w, **steps) < MOST_EPS
    expected = np.maximum(plain + bias[:, None, None], 0)
    np.testing.assert_allclose(first, expected, atol=1e-5 * np.abs(plain).max())
    assert first.tobytes() == second.tobytes()
    assert first.strides == engine.conv_forward(x, w, **steps).strides


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_drawn_layers_agree_with_conv_forward(rng, seed, dtype):
    draw = random.Random(seed)
    for _ in range(40):
        rank, groups = draw.choice([1, 2, 2, 3]), draw.choice([1, 1, 2])
        kernel = [draw.randint(1, 3) for _ in range(rank)]
        sizes = [draw.randint(3, 12) for _ in range(rank)]
        c, o = groups * draw.choice([1, 5, 16, 33]), groups * draw.choice([1, 7, 16, 70])
        steps = {"stride": draw.choice([1, 2]), "padding": draw.choice([0, 1]), "groups": groups}
        shape = (draw.choice([0, 1, 2]), c, *sizes)
        x = rng.standard_normal(shape[draw.choice([0, 0, 1]) :]).astype(dtype)
        w = rng.standard_normal((o, c // groups, *kernel)).astype(dtype)
        y = PrepackedConvolution(w, **steps)(x)
        expected = engine.conv_forward(x, w, **steps)
        assert y.shape == expected.shape
        assert y.strides == expected.strides
        scale = np.abs(expected).max(initial=1e-30)
        assert np.abs(y - expected).max(initial=0) <= 60 * EPS[dtype] * max(scale, 1)


def test_bits_do_not_depend_on_the_threads(rng):
    before = engine.get_num_threads()
    cases = [((1, 64, 14, 14), (96, 64, 3, 3)), ((2, 40, 31, 31), (70, 40, 3, 3))]
    try:
        for x_shape, w_shape in cases:
            x, w = (rng.standard_normal(s).astype("f4") for s in (x_shape, w_shape))
            results = set()
            for threads in (1, 2, 3, 7):
                engine.set_num_threads(threads)
                for algorithm in ("winograd", "indirect"):
                    with backends.conv.flags(algorithm=algorithm):
                        results.add((algorithm, PrepackedConvolution(w, padding=1)(x).tobytes()))
            assert len(results) == 2
    finally:
        engine.set_num_threads(before)


def test_large_transformed_weights_that_are_read_once_are_not_kept(rng, monkeypatch):
    x_shape, w_shape = (1, 64, 14, 14), (64, 64, 3, 3)
    x, w = (rng.standard_normal(shape).astype("f4") for shape in (x_shape, w_shape))
    results = {}
    for most in (36 * 64 * 64 * 4, 36 * 64 * 64 * 4 - 1):
        monkeypatch.setattr(winograd, "MOST_PREPACKED_BYTES", most)
        cached_plan.cache_clear()
        with backends.conv.flags(algorithm="winograd"):
            fixed = PrepackedConvolution(w, padding=1)
            call_plan, block = fixed.prepared(x.shape, x.strides, x.dtype)
            assert call_plan.plan.algorithm == "winograd"
            results[block is None] = fixed(x).tobytes()
    cached_plan.cache_clear()
    assert results[False] == results[True]


@pytest.mark.parametrize(("n", "kept"), [(1, False), (10, False), (11, True)])
def test_only_weights_that_many_tiles_read_are_kept_where_they_are_large(n, kept):
    shape, strides = (n, 512, 14, 14), (512 * 14 * 14 * 4, 4, 14 * 512 * 4, 512 * 4)
    w = in_format(np.zeros((512, 512, 3, 3), "f4"), True)
    call_plan, block = PrepackedConvolution(w, padding=1).prepared(shape, strides, w.dtype)
    assert call_plan.plan.algorithm == "winograd"
    assert (block is not None) == kept


def test_a_bound_call_reads_what_its_arrays_hold_now(rng):
    x, w = (rng.standard_normal(shape).astype("f4") for shape in ((2, 16, 9, 9), (32, 16, 3, 3)))
    call_plan = cached_plan(
        FORWARD,
        *(x.shape, x.strides, x.dtype, w.shape, w.strides, w.dtype),
        *(current(), 1, 0, 1, 1),
    )
    assert call_plan.binds
    y = np.zeros(call_plan.shape, "f4")
    threads = call_plan.kernel.threads()
    block = memory.Block(call_plan.plan.shared_bytes + threads * call_plan.plan.scratch_bytes + 64)
    call = call_plan.kernel.run(x, w, y, block, threads, later=True)
    assert not y.any()
    for _ in range(2):
        call()
        assert y.tobytes() == engine.conv_forward(x, w).tobytes()
        x[...] = rng.standard_normal(x.shape)


def test_a_fifth_shape_forgets_the_first(rng):
    w = rng.standard_normal((20, 16, 3, 3)).astype("f4")
    fixed = PrepackedConvolution(w)
    for n in (*range(1, MOST_SHAPES + 3), 1):
        x = rng.standard_normal((n, 16, 9, 9)).astype("f4")
        assert error(fixed(x), x, w) < MOST_EPS
        assert len(fixed._plans) <= MOST_SHAPES


def test_threads_may_share_one(rng):
    w = rng.standard_normal((64, 32, 3, 3)).astype("f4")
    fixed, inputs = (
        PrepackedConvolution(w),
        [rng.standard_normal((1, 32, s, s)).astype("f4") for s in range(5, 13)],
    )
    expected = [PrepackedConvolution(w)(x).tobytes() for x in inputs]
    wrong: list[int] = []

    def work() -> None:
        for _ in range(20):
            for i, x in enumerate(inputs):
                if fixed(x).tobytes() != expected[i]:
                    wrong.append(i)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_errors_are_conv_forwards(rng):
    w = rng.standard_normal((4, 3, 3, 3))
    with pytest.raises(TypeError, match=r"weight must be a numpy\.ndarray, got list"):
        PrepackedConvolution([1.0])
    with pytest.raises(ValueError, match="bias must have one element an output channel"):
        PrepackedConvolution(w, np.zeros(3))
    fixed = PrepackedConvolution(w)
    with pytest.raises(TypeError, match="input must be a numpy"):
        fixed(3)
    with pytest.raises(TypeError, match="same dtype"):
        fixed(np.zeros((1, 3, 5, 5), "f4"))
    with pytest.raises(ValueError, match="channels"):
        fixed(np.zeros((1, 4, 5, 5)))
    assert fixed(np.zeros((1, 3, 5, 5))).shape == (1, 4, 3, 3)  # and it still works
