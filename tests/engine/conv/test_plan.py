"""The plan: what it says is what happens, in memory that N and the sizes do not change."""

import numpy as np
import pytest
from draws import lay_out, numbers

from convcore import engine
from convcore.engine.conv.plan import plan_conv
from convcore.engine.conv.problem import PASSES
from convcore.engine.geometry import make_geometry
from convcore.engine.runtime import memory

# input, weight, stride, padding, groups, and the passes' algorithms in contiguous float64
LAYERS = {
    "dense": ((4, 64, 28, 28), (64, 64, 3, 3), 1, 1, 1, ("im2col", "im2col", "im2col")),
    "pointwise": ((4, 64, 28, 28), (32, 64, 1, 1), 1, 0, 1, ("pointwise",) * 3),
    "pointwise, strided": (
        (4, 64, 28, 28), (32, 64, 1, 1), 2, 0, 1, ("im2col", "stride_decomposition", "im2col"),
    ),
    "pointwise, padded": (
        (4, 64, 28, 28), (32, 64, 1, 1), 1, 1, 1, ("im2col", "im2col", "im2col"),
    ),
    "strided": (
        (4, 32, 28, 28), (64, 32, 3, 3), 2, 1, 1, ("im2col", "stride_decomposition", "im2col"),
    ),
    "few channels": ((2, 3, 64, 64), (16, 3, 7, 7), 2, 3, 1, ("im2col", "gemm_col2im", "im2col")),
    "small maps": ((8, 32, 12, 12), (16, 32, 5, 5), 1, 0, 1, ("im2col", "gemm_col2im", "im2col")),
    "patches": ((2, 32, 64, 64), (16, 32, 8, 8), 8, 0, 1, ("im2col", "gemm_col2im", "im2col")),
    "grouped": ((2, 64, 14, 14), (64, 16, 3, 3), 1, 1, 4, ("im2col", "im2col", "im2col")),
    "depthwise": ((2, 40, 14, 14), (40, 1, 3, 3), 1, 1, 40, ("im2col", "gemm_col2im", "depthwise")),
    "one image": ((1, 256, 7, 7), (256, 256, 3, 3), 1, 1, 1, ("im2col", "im2col", "im2col")),
}  # fmt: skip


def geometry_of(layer):
    x_shape, w_shape, stride, padding, groups, _ = LAYERS[layer]
    return make_geometry(x_shape, w_shape, stride, padding, 1, groups)


@pytest.mark.parametrize("layer", LAYERS)
def test_plan_chooses_the_algorithm(layer):
    plan = plan_conv(geometry_of(layer), "float64")
    assert tuple(getattr(plan, name).algorithm for name in PASSES) == LAYERS[layer][-1]


def test_plan_of_depthwise_channels_last_needs_no_gemm():
    plan = plan_conv(geometry_of("depthwise"), "float32", channels_last=True)
    assert {getattr(plan, name).algorithm for name in PASSES} == {"depthwise"}


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("memory_format", ["contiguous", "channels_last"])
def test_planned_memory_is_what_a_call_takes(layer, memory_format, rng, threads, monkeypatch):
    x_shape, w_shape, stride, padding, groups, _ = LAYERS[layer]
    g = geometry_of(layer)
    x, w, y = (
        lay_out(numbers(rng, shape, "float32"), memory_format, rng)
        for shape in (x_shape, w_shape, g.output_shape)
    )
    asked, take = [], memory.take
    monkeypatch.setattr(memory, "take", lambda n_bytes: asked.append(n_bytes) or take(n_bytes))
    threads(1)
    steps = {"stride": stride, "padding": padding, "groups": groups}
    engine.conv_forward(x, w, **steps)
    engine.conv_input_grad(y, w, x_shape[2:], **steps)
    engine.conv_weight_grad(x, y, w_shape[2:], **steps)
    plan = plan_conv(g, "float32", memory_format == "channels_last")
    passes = [getattr(plan, name) for name in PASSES]
    assert asked == [m.scratch_bytes + m.shared_bytes for m in passes]


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("channels_last", [False, True])
def test_planned_memory_does_not_grow_with_the_batch_or_the_map(layer, channels_last):
    x_shape, w_shape, stride, padding, groups, _ = LAYERS[layer]

    def bytes_of(n, factor):
        shape = (n, x_shape[1], *(factor * size for size in x_shape[2:]))
        g = make_geometry(shape, w_shape, stride, padding, 1, groups)
        plan = plan_conv(g, "float32", channels_last)
        passes = [getattr(plan, name) for name in PASSES]
        return np.array([m.scratch_bytes + m.shared_bytes for m in passes])

    # Blocks are equal shares of at most a fixed size, so bytes vary, but only below a bound.  What
    # fits a quarter of a cache is no growth: bands of a few rows are as long as the rows.
    assert (bytes_of(512, 16) <= np.maximum(2 * bytes_of(64, 4), 256 << 10)).all()


@pytest.mark.parametrize("shape", [(2, 3, 9, 9), (1, 2048, 7, 7), (1, 64, 1, 100_000)])
@pytest.mark.parametrize("kernel", [(1, 1), (7, 7), (1, 2000)])
def test_patches_are_gathered_in_parts_of_at_most_half_a_mebibyte(shape, kernel):
    g = make_geometry(shape, (32, shape[1], *kernel), padding=[(k // 2, k) for k in kernel])
    for channels_last in (False, True):
        plan = plan_conv(g, "float32", channels_last)
        for name in PASSES:
            part = getattr(plan, name)
            # A row of columns takes up to 31 elements more than its pixels.
            assert part.patches * 4 <= (1 << 19) * (1 + 32 / part.block)


@pytest.mark.parametrize(
    ("x_shape", "w_shape"),
    [
        ((8, 160, 7, 7), (960, 160, 1, 1)),
        ((8, 512, 7, 7), (2048, 512, 1, 1)),
        ((8, 256, 14, 14), (1024, 256, 1, 1)),
        ((8, 512, 28, 28), (256, 512, 1, 1)),
        ((8, 128, 28, 28), (128, 128, 3, 3)),
    ],
)
def test_weight_gradients_have_work_for_many_threads(x_shape, w_shape):
    g = make_geometry(x_shape, w_shape, 1, w_shape[-1] // 2)
    assert plan_conv(g, "float32", channels_last=True).weight_grad.items >= 6


def test_plan_does_not_depend_on_the_number_of_threads(threads):
    plans = []
    for n in (1, 7):
        threads(n)
        plans.append(plan_conv(geometry_of("dense"), "float32"))
    assert plans[0] == plans[1]


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("c_out", [1, 40, 5000])
def test_scratch_of_the_general_algorithms_is_two_parts_at_most(layer, channels_last, c_out):
    x_shape, w_shape, stride, padding, groups, _ = LAYERS[layer]
    if groups > 1:
        pytest.skip("C_out is tied to the groups")
    g = make_geometry(x_shape, (c_out, *w_shape[1:]), stride, padding)
    plan = plan_conv(g, "float64", channels_last)
    for name in PASSES:
        assert getattr(plan, name).scratch_bytes <= 2 * (1 << 19) + 64 * 8


@pytest.mark.parametrize(
    ("geometry", "dtype", "words"),
    [
        (None, "float32", ("geometry", "None")),
        ("dense", "int64", ("dtype", "int64", "float32")),
        ("dense", "object", ("dtype", "object", "complex128")),
    ],
)
def test_plan_errors_name_the_argument(geometry, dtype, words):
    with pytest.raises(TypeError) as error:
        plan_conv(geometry_of(geometry) if geometry else None, dtype)
    assert all(word in str(error.value) for word in words)
