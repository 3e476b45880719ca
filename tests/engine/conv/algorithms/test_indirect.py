"""Products by pointers: every way in which blocks, lines, classes, channels and taps may end."""

import inspect
import json

import numpy as np
import pytest
from draws import lay_out

from convcore import engine
from convcore.backends import conv
from convcore.engine import reference
from convcore.engine.conv.bfloat16 import plan as bfloat16
from convcore.engine.conv.problem import PASSES
from convcore.engine.runtime import _isa, memory

GUARD = 64

# input, weight, and steps; sums of products of these integers are exact in float32.
CASES = {
    "lines of a block": ((2, 20, 33, 30), (24, 20, 3, 3), {"padding": 1}),
    "planes of a block": ((70, 5, 3, 4), (70, 5, 2, 2), {"padding": 1}),
    "pieces of a line": ((2, 8, 3, 700), (9, 8, 1, 5), {"stride": (1, 3), "padding": (0, 2)}),
    "one long axis": ((1, 17, 2000), (16, 17, 7), {"dilation": 9, "padding": 20}),
    "three axes": ((2, 6, 5, 7, 9), (130, 6, 3, 2, 3), {"stride": (2, 1, 2), "padding": (1, 1, 2)}),
    "only every third": ((3, 19, 20, 23), (65, 19, 1, 1), {"stride": 3, "padding": (0, 3)}),
    "classes of unlike taps": ((2, 16, 19, 22), (31, 16, 4, 5), {"stride": (2, 4), "padding": 2}),
    "more remainders than taps": ((2, 16, 15, 14), (16, 16, 2, 1), {"stride": (3, 5)}),
    "steps that share a factor": (
        (2, 16, 25, 25), (20, 16, 3, 2), {"stride": (2, 4), "dilation": (4, 2), "padding": 3},
    ),
    "nothing but padding": ((1, 4, 2, 2), (4, 4, 3, 3), {"padding": 9, "stride": 2, "dilation": 4}),
    "parts of the channels": ((1, 900, 6, 5), (40, 900, 3, 3), {"padding": 1}),
    "blocks of output channels": ((1, 5, 9, 9), (1100, 5, 2, 2), {}),
    "one block of pixels": ((2, 150, 6, 5), (260, 150, 3, 3), {"padding": 1}),
    "groups": ((3, 3 * 37, 11, 9), (3 * 21, 37, 3, 2), {"groups": 3, "padding": 1}),
    "far apart": ((2, 33, 90, 80), (17, 33, 2, 2), {"stride": 7, "dilation": 31, "padding": 3}),
    "many taps": ((1, 4, 30, 31), (5, 4, 9, 11), {"padding": (4, 5)}),
}  # fmt: skip


def wrong_maps(name, memory_format, seed, algorithm):
    """Compute a case's passes; return what is wrong about each, in words."""
    x_shape, w_shape, steps = CASES[name]
    rng = np.random.default_rng(seed)
    g = engine.make_geometry(x_shape, w_shape, **steps)

    def draw(shape):
        array = rng.integers(-3, 4, shape).astype("float32")
        if memory_format == "channels_last":
            array = np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1)
        return array[..., ::-1] if memory_format == "backwards" else array

    x, w, y = draw(x_shape), draw(w_shape), draw(g.output_shape)
    passes = {
        "forward": lambda o: o.conv_forward(x, w, **steps),
        "input_grad": lambda o: o.conv_input_grad(y, w, x_shape[2:], **steps),
        "weight_grad": lambda o: o.conv_weight_grad(x, y, w_shape[2:], **steps),
    }
    wrong = []
    with conv.flags(algorithm=algorithm):
        plans = engine.plan_conv(g, "float32", memory_format == "channels_last")
        for pass_name, compute in passes.items():
            if getattr(plans, pass_name).algorithm != algorithm:
                wrong.append(f"{pass_name} by {getattr(plans, pass_name).algorithm}")
            elif not np.array_equal(compute(engine), compute(reference)):
                wrong.append(f"{pass_name} differs")
    return wrong


@pytest.fixture
def guarded(monkeypatch):
    """Have scratch full of NaN, and look behind its end when it is given back."""

    def take(n_bytes):
        block = np.full(n_bytes + GUARD, 255, np.uint8)
        block[n_bytes:] = 7
        return block

    def give(block):
        assert (block[-GUARD:] == 7).all(), "written behind the end"

    monkeypatch.setattr(memory, "take", take)
    monkeypatch.setattr(memory, "give", give)


@pytest.mark.parametrize("algorithm", ["indirect", "bfloat16"])
@pytest.mark.parametrize("memory_format", ["contiguous", "channels_last", "backwards"])
@pytest.mark.parametrize("name", CASES)
def test_passes_are_the_oracles_and_stay_in_their_memory(
    name, memory_format, algorithm, seed, guarded
):
    found = wrong_maps(name, memory_format, seed, algorithm)
    _, w_shape, _ = CASES[name]
    if algorithm == "bfloat16" and min(w_shape[:2]) < bfloat16.LEAST_SUMMED:
        # Left to others; the weight gradient sums over pixels.
        assert not [line for line in found if "differs" in line or "weight" in line]
    else:
        assert found in ([], ["input_grad by gemm_col2im"])


# Run in a child too, at each level of instructions.
CHECK = f"CASES = {CASES}\n{inspect.getsource(wrong_maps)}"


@pytest.mark.subprocess
@pytest.mark.parametrize("level", _isa.names()[:-1])
def test_passes_are_the_oracles_at_every_instruction_set(run_child, seed, level):
    program = f"""
import os
os.environ["CONVCORE_ISA"] = {level!r}
import json
import numpy as np
from convcore import engine
from convcore.backends import conv
from convcore.engine import reference
from convcore.engine.runtime import _isa
assert _isa.name() == {level!r}
{CHECK}
found = {{}}
for name in CASES:
    for memory_format in ("contiguous", "channels_last"):
        found[name, memory_format] = wrong_maps(name, memory_format, {seed}, "indirect")
print(json.dumps([str(item) for item in found.items() if item[1]]))
"""
    found = json.loads(run_child(program))
    assert all("['input_grad by gemm_col2im']" in line for line in found), found


@pytest.mark.parametrize("channels_last", [False, True])
def test_bits_do_not_depend_on_the_number_of_threads(channels_last, rng, threads):
    arrays = [rng.standard_normal(shape, "float32") for shape in ((3, 32, 29, 27), (70, 32, 3, 3))]
    arrays.append(rng.standard_normal((3, 70, 15, 14), "float32"))
    if channels_last:
        arrays = [lay_out(a, "channels_last", rng) for a in arrays]
    x, w, y = arrays
    steps = {"stride": 2, "padding": 1}
    found = []
    for n in (1, 2, 3, 7):
        threads(n)
        with conv.flags(algorithm="indirect"):
            passes = (
                engine.conv_forward(x, w, **steps),
                engine.conv_input_grad(y, w, (29, 27), **steps),
                engine.conv_weight_grad(x, y, (3, 3), **steps),
            )
        found.append([a.tobytes("A") for a in passes])
    assert all(bits == found[0] for bits in found)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("kernel", [1, 3, 5, 11])
@pytest.mark.parametrize("stride", [1, 2, 4])
def test_memory_stays_within_its_bounds(channels_last, kernel, stride):
    for n, c, o, size in [
        (1, 4, 4, 40),
        (8, 64, 64, 56),
        (4, 300, 70, 9),
        (2, 64, 64, 300),
        (8, 2048, 2048, 14),
    ]:
        g = engine.make_geometry((n, c, size, size), (o, c, kernel, kernel), stride, kernel // 2)
        with conv.flags(algorithm="indirect"):
            plan = engine.plan_conv(g, "float32", channels_last)
        for name in PASSES:
            part = getattr(plan, name)
            if part.algorithm != "indirect":
                continue
            assert part.scratch_bytes <= 4 << 20, part
            if name == "weight_grad":
                assert part.shared_bytes <= 32 << 20
            else:
                assert part.shared_bytes <= 4 * 4 * o * c * kernel**2 + 256


@pytest.mark.parametrize("size, kernel", [(64, 7), (512, 3), (1100, 1)])
@pytest.mark.parametrize("channels_last", [False, True])
def test_long_sums_of_one_sign_keep_within_the_bound(rng, size, kernel, channels_last):
    """Added one after another, 4,608 products of one sign were off by 33 eps."""
    shapes = ((1, size, 9, 9), (40, size, kernel, kernel), (1, 40, 9, 9))
    x, w, y = (np.abs(rng.standard_normal(shape, np.float32)) for shape in shapes)
    if channels_last:
        x = np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    steps = {"padding": kernel // 2}
    with conv.flags(algorithm="indirect"):
        found = (
            engine.conv_forward(x, w, **steps),
            engine.conv_input_grad(y, w, (9, 9), **steps),
            engine.conv_weight_grad(x, y, (kernel, kernel), **steps),
        )
    exact = (
        reference.conv_forward(x, w, **steps),
        reference.conv_input_grad(y, w, (9, 9), **steps),
        reference.conv_weight_grad(x, y, (kernel, kernel), **steps),
    )
    for ours, right in zip(found, exact, strict=True):
        assert reference.error_in_eps(ours, right, right, np.float32) < 12


@pytest.mark.parametrize(
    ("width", "channels_last", "algorithm"),
    [
        (64, False, "pointwise"),
        (65, False, "indirect"),
        (1, True, "indirect"),
        (64, True, "indirect"),
    ],
)
def test_planes_of_few_pixels_are_not_transposed(width, channels_last, algorithm):
    g = engine.make_geometry((1, 64, 1, width), (64, 64, 1, 1))
    plan = engine.plan_conv(g, "float32", channels_last).forward
    assert plan.algorithm == algorithm
    transposed = "after lines are turned" in plan.reason
    assert transposed == (algorithm == "indirect" and not channels_last)


@pytest.mark.parametrize(
    ("summed", "made", "side", "algorithm"),
    [
        (64, 256, 56, "pointwise"),
        (64, 64, 56, "pointwise"),
        (128, 256, 28, "pointwise"),
        (128, 128, 28, "indirect"),
        (256, 64, 56, "indirect"),
        (64, 256, 14, "indirect"),
    ],
)
def test_large_planes_of_few_summed_channels_are_left_to_blas(summed, made, side, algorithm):
    forward = engine.make_geometry((8, summed, side, side), (made, summed, 1, 1))
    backward = engine.make_geometry((8, made, side, side), (summed, made, 1, 1))
    assert engine.plan_conv(forward, "float32").forward.algorithm == algorithm
    assert engine.plan_conv(backward, "float32").input_grad.algorithm == algorithm
    pixels = engine.plan_conv(forward, "float32", channels_last=True)
    assert pixels.forward.algorithm == "indirect"


@pytest.mark.parametrize("channels_last", [False, True])
def test_taps_on_padding_alone_are_left_out(rng, channels_last):
    """A product with a zero of the padding would be NaN."""
    x, w = rng.standard_normal((1, 64, 8, 8), np.float32), np.ones((64, 64, 3, 3), np.float32)
    if channels_last:
        x = np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    steps = {"dilation": 9, "padding": 9}
    wide, narrow = w.copy(), np.zeros_like(w)
    wide[:, :, 0] = wide[:, :, 2] = np.inf
    narrow[:, :, 1, 1] = 1
    infinite = np.full_like(x, np.inf)
    with conv.flags(algorithm="indirect"):
        for of in (engine.conv_forward, lambda a, b, **k: engine.conv_input_grad(a, b, 8, **k)):
            np.testing.assert_allclose(of(x, wide, **steps), of(x, narrow, **steps), atol=1e-4)
        gw = engine.conv_weight_grad(abs(x), infinite, (3, 3), **steps)
    assert np.isinf(gw[:, :, 1, 1]).all()
    assert not gw[:, :, 0].any() and not gw[:, :, 2].any()
