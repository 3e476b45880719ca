"""What a layer costs in counts, which no busy machine changes: calls, multiply-adds and bytes.

Times are measured by `convcore bench`; nothing here is a second.
"""

import pytest

import convcore
from convcore import engine, nn
from convcore.backends import conv
from convcore.bench.suites import SUITES, layers_of
from convcore.engine.conv import blocks
from convcore.engine.conv.call import CallPlan
from convcore.engine.conv.plan import plan_conv
from convcore.engine.conv.problem import PASSES, WEIGHT_GRAD
from convcore.engine.runtime import memory
from convcore.nn import functional

TABLE = {layer.name: layer for layer in SUITES["table"]}

# The most multiply-adds of forward map, input gradient and weight gradient, out of those of the
# definition.  Tiles of 4x4 outputs take 36 of 144; 14 x 14 and 7 x 7 outputs fill 16 x 16 and
# 8 x 8.  Nothing takes more than the definition, but for columns on the edges of scattered tiles.
MOST_MULTIPLY_ADDS = {
    "7x7 s2 3-64 @224": (1.0, 1.01, 1.0),
    "3x3 64 @56": (0.25, 0.25, 0.25),
    "1x1 64-256 @56": (1.0, 1.0, 1.0),
    "1x1 256-64 @56": (1.0, 1.0, 1.0),
    "3x3 128 @28": (0.25, 0.25, 0.25),
    "3x3 s2 128 @56": (1.0, 1.0, 1.0),
    "1x1 512-128 @28": (1.0, 1.0, 1.0),
    "3x3 256 @14": (0.33, 0.33, 0.33),
    "3x3 512 @7": (0.33, 0.33, 0.33),
    "1x1 s2 1024-2048 @14": (1.0, 1.0, 1.0),
    "3x3 64 @224, N=2": (0.25, 0.25, 0.25),
    "3x3 3-64 @224, N=2": (1.0, 1.04, 1.0),
    "depthwise 3x3 144 @56": (1.0, 1.0, 1.0),
    "5x5 s2 128-256 @32": (1.0, 1.0, 1.0),
    "3x3 dilation 2 256 @28": (0.33, 0.33, 0.33),
    "5x5 1-32 @28, N=64": (1.0, 1.0, 1.0),
    "3x3 groups=32 128 @56": (1.0, 1.0, 1.0),
    "3x3 64 @56, N=1": (0.25, 0.25, 0.25),
    "3x3 512 @7, N=1": (1.0, 1.0, 1.0),
}
# The widest panel of any instruction set.
PANEL = 64
FORMATS = ("contiguous", "channels_last")


def plans_of(layer, memory_format, dtype="float32"):
    plan = plan_conv(layer.geometry, dtype, memory_format == "channels_last")
    return [getattr(plan, name) for name in PASSES]


def bounds(name, plan, geometry):
    """Return the (bytes, bound) pairs that a map's plan has to keep."""
    yield plan.scratch_bytes, blocks.SCRATCH_BYTES
    if name == WEIGHT_GRAD:
        yield plan.shared_bytes, blocks.PARTIAL_BYTES
    else:
        # Weights lie in whole panels of outputs (of the input's channels, for its gradient), which
        # for narrow groups is most of them; and a little apart, for the cache's sake.
        made = (geometry.c_out if name == "forward" else geometry.c_in) // geometry.groups
        panels = -(-made // PANEL) * PANEL / made
        weight = geometry.c_out * geometry.columns * plan.itemsize
        yield plan.shared_bytes, max(1.07 * blocks.MOST_WEIGHTS * panels * weight, 4096)


def test_every_layer_of_the_table_has_its_bound():
    assert set(MOST_MULTIPLY_ADDS) == set(TABLE)


@pytest.mark.parametrize("memory_format", FORMATS)
@pytest.mark.parametrize("name", MOST_MULTIPLY_ADDS)
def test_layer_takes_no_more_multiply_adds_than_stated(name, memory_format):
    layer = TABLE[name]
    done = [p.multiply_adds for p in plans_of(layer, memory_format)]
    shares = [n / layer.geometry.multiply_adds for n in done]
    assert all(n > 0 for n in done)
    assert all(n <= most for n, most in zip(shares, MOST_MULTIPLY_ADDS[name], strict=True)), shares


@pytest.mark.parametrize("memory_format", FORMATS)
def test_pointwise_layer_gathers_no_patches(memory_format):
    for name in ("1x1 64-256 @56", "1x1 256-64 @56", "1x1 512-128 @28"):
        plans = plans_of(TABLE[name], memory_format)
        assert [p.patches for p in plans] == [0] * 3


@pytest.mark.parametrize("memory_format", FORMATS)
def test_strided_input_gradient_multiplies_no_zeros_put_between_elements(memory_format):
    for layer in layers_of(SUITES):
        if min(a.stride for a in layer.geometry.axes) > 1:
            gradient = plans_of(layer, memory_format)[1]
            assert gradient.multiply_adds <= 1.5 * layer.geometry.multiply_adds, layer.name


@pytest.mark.parametrize("memory_format", FORMATS)
def test_weights_of_the_table_take_at_most_four_times_their_bytes(memory_format):
    for layer in SUITES["table"]:
        weight = layer.geometry.c_out * layer.geometry.columns
        for plan in plans_of(layer, memory_format)[:2]:
            assert plan.shared <= 1.02 * blocks.MOST_WEIGHTS * weight + 1024, (layer.name, plan)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("memory_format", FORMATS)
def test_memory_of_every_layer_keeps_its_bounds(memory_format, dtype):
    for layer in layers_of(SUITES):
        for name, plan in zip(PASSES, plans_of(layer, memory_format, dtype), strict=True):
            for n_bytes, most in bounds(name, plan, layer.geometry):
                assert n_bytes <= most, (layer.name, name, plan)


@pytest.mark.parametrize("algorithm", conv.algorithms)
@pytest.mark.parametrize("memory_format", FORMATS)
def test_memory_keeps_its_bounds_whatever_is_forced(memory_format, algorithm):
    with conv.flags(algorithm=algorithm):
        test_memory_of_every_layer_keeps_its_bounds(memory_format, "float32")


@pytest.mark.parametrize("memory_format", FORMATS)
def test_double_precision_and_strict_mode_do_every_product(memory_format):
    for layer in SUITES["table"]:
        products = layer.geometry.multiply_adds
        with conv.flags(strict=True):
            strict = plans_of(layer, memory_format)
        for plan in (*strict, *plans_of(layer, memory_format, "float64")):
            assert plan.multiply_adds >= products, layer.name


@pytest.fixture
def counted(monkeypatch):
    """Count the passes that the engine computes, their multiply-adds, and the workspaces taken."""
    counts = {"multiply_adds": 0, "workspaces": 0, **dict.fromkeys(PASSES, 0)}

    def counting(map, function):
        def count(*arguments, **steps):
            counts[map] += 1
            return function(*arguments, **steps)

        return count

    def call(self, *arguments, run=CallPlan.__call__):
        counts["multiply_adds"] += self.plan.multiply_adds
        return run(self, *arguments)

    def take(n_bytes, take=memory.take):
        counts["workspaces"] += 1
        return take(n_bytes)

    for name in PASSES:
        monkeypatch.setattr(engine, f"conv_{name}", counting(name, getattr(engine, f"conv_{name}")))
    monkeypatch.setattr(CallPlan, "__call__", call)
    monkeypatch.setattr(memory, "take", take)
    return counts


def test_training_step_computes_each_map_once_and_no_gradient_of_the_images(counted):
    net = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 1, bias=False)
    ).double()
    net(convcore.randn(2, 3, 8, 8, dtype=convcore.float64)).sum().backward()
    first, second = 2 * 64 * 27 * 16, 2 * 64 * 16 * 32
    assert counted == {
        "forward": 2,
        "input_grad": 1,
        "weight_grad": 2,
        "workspaces": 5,
        "multiply_adds": 2 * first + 3 * second,
    }


def test_inference_computes_the_forward_maps_alone(counted):
    x, w = convcore.randn(2, 3, 8, 8), convcore.randn(16, 3, 3, 3, requires_grad=True)
    with convcore.no_grad():
        functional.conv2d(x, w)
        functional.conv_activation(x, w)
    assert [counted[name] for name in (*PASSES, "workspaces")] == [2, 0, 0, 2]
