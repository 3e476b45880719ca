"""Products in bfloat16: rounded factors, one order of additions, the same bits everywhere."""

import hashlib
import inspect
import json
import os

import numpy as np
import pytest
from draws import lay_out
from forks import in_fork

from convcore import engine
from convcore.backends import conv
from convcore.cli.machine import cpu_flags
from convcore.engine import reference
from convcore.engine.conv.bfloat16 import plan as bfloat16
from convcore.engine.conv.problem import PASSES, dense_problem
from convcore.engine.geometry import make_geometry
from convcore.engine.runtime import _isa

# input, weight, and steps: whole and partial blocks of terms, parts, classes of columns, groups.
LAYERS = {
    "1x1": ((2, 64, 14, 14), (128, 64, 1, 1), {}),
    "3x3 stride 2": ((2, 48, 9, 9), (40, 48, 3, 3), {"stride": 2, "padding": 1}),
    "dilation 2": ((1, 100, 7, 7), (70, 100, 3, 3), {"padding": 1, "dilation": 2}),
    "parts of the channels": ((2, 700, 6, 6), (50, 700, 3, 3), {"padding": 1}),
    "groups": ((2, 64, 12, 12), (64, 32, 3, 3), {"stride": 2, "padding": 1, "groups": 2}),
    "pieces of the output's channels": ((1, 64, 5, 5), (656, 64, 3, 3), {"padding": 1}),
    "few pixels": ((8, 1024, 7, 7), (256, 1024, 1, 1), {}),
    "stride above the kernel": ((4, 320, 3, 3), (64, 320, 1, 1), {"stride": 2}),
    "lines far apart": (
        (1, 24, 69, 211), (24, 24, 2, 1), {"stride": (1, 2), "dilation": (60, 1)},
    ),
}  # fmt: skip


def arrays_of(x_shape, w_shape, steps, layout):
    """Draw input, weight and grad_output, with a few whose products underflow."""
    rng = np.random.default_rng(7)
    g = engine.make_geometry(x_shape, w_shape, **steps)
    arrays = [rng.standard_normal(s).astype("f4") for s in (x_shape, w_shape, g.output_shape)]
    for array in arrays:
        array.flat[:4] = 1e-39, 3e-20, -2e-20, 1.00390625
    if layout == "channels_last":
        arrays = [
            np.ascontiguousarray(a.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2) for a in arrays
        ]
    return arrays


def passes_of(on, x, w, y, steps):
    yield on.conv_forward(x, w, **steps)
    yield on.conv_input_grad(y, w, x.shape[2:], **steps)
    yield on.conv_weight_grad(x, y, w.shape[2:], **steps)


def digests(layers, layout):
    """Return a digest of all passes of each layer, computed in bfloat16."""
    found = {}
    for name, layer in layers.items():
        state = hashlib.sha256()
        with conv.flags(algorithm="bfloat16"):
            for result in passes_of(engine, *arrays_of(*layer, layout), layer[2]):
                state.update(np.ascontiguousarray(result).tobytes())
        found[name] = state.hexdigest()
    return found


@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
@pytest.mark.parametrize("name", LAYERS)
def test_results_are_float32_sums_of_rounded_factors(name, layout):
    x_shape, w_shape, steps = LAYERS[name]
    x, w, y = arrays_of(x_shape, w_shape, steps, layout)
    plans = plans_of(x_shape, w_shape, steps, algorithm="bfloat16")
    assert [plan.algorithm for plan in plans] == ["bfloat16"] * 3
    rounded = [reference.rounded_to_bfloat16(a) for a in (x, w, y)]
    exact = passes_of(reference, *rounded, steps)
    bounds = passes_of(reference, *map(np.abs, rounded), steps)
    with conv.flags(algorithm="bfloat16"):
        for result, wanted, bound in zip(
            passes_of(engine, x, w, y, steps), exact, bounds, strict=True
        ):
            assert reference.error_in_eps(result, wanted, bound, "f4") < 4


def plans_of(x_shape, w_shape, steps, **flags):
    with conv.flags(**flags):
        plan = engine.plan_conv(make_geometry(x_shape, w_shape, **steps), "float32", True)
    return [getattr(plan, name) for name in PASSES]


def fused(a, b, c):
    """Return a * b + c of bfloat16 factors, whose product is exact, rounded to float32 once."""
    return (a.astype("f8") * b + c).astype("f4")


@pytest.mark.parametrize("terms", [5, 32, 77, 128])
def test_the_order_of_additions_is_that_of_two_chains_of_pairs_in_blocks(terms, rng):
    x = reference.rounded_to_bfloat16(rng.standard_normal((1, terms, 1, 6))).astype("f4")
    w = reference.rounded_to_bfloat16(rng.standard_normal((8, terms, 1, 1))).astype("f4")
    if terms < 8:
        x, w = (np.concatenate([a, np.zeros_like(a)], 1) for a in (x, w))
    with conv.flags(algorithm="bfloat16"):
        found = engine.conv_forward(x, w)[0, :, 0]
    filled = [np.pad(a[..., 0, :] if a is x else a[..., 0], ((0, 0), (0, -terms % 32), (0, 0)))
              for a in (x, w)]  # fmt: skip
    pixels, weights = filled[0][0], filled[1][..., 0].T
    total = np.zeros((8, 6), "f4")
    for block in range(0, len(pixels) // 32 * 32, 32):
        chains = [np.zeros((8, 6), "f4"), np.zeros((8, 6), "f4")]
        for pair in range(16):
            for term in (block + 2 * pair + 1, block + 2 * pair):
                left, right = weights[term][:, None], pixels[term][None]
                chains[pair % 2] = fused(left, right, chains[pair % 2])
        total = total + (chains[0] + chains[1])
    np.testing.assert_array_equal(found, total)


def test_factors_are_rounded_to_nearest_and_ties_to_even():
    # Halfway between neighbours, just above, just below; the largest, which rounds to infinity.
    values = np.float32([1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, 1 + 2**-8 - 2**-20, -1e-39])
    values = np.append(values, np.float32([3.4e38, -np.inf, np.nan, 2**-126, 0]))
    wanted = np.float32([1, 1 + 2**-6, 1 + 2**-7, 1, 0, np.inf, -np.inf, np.nan, 2**-126, 0])
    x = np.zeros((1, 8, 1, len(values)), "f4")
    x[0, 3, 0] = values
    w = np.zeros((8, 8, 1, 1), "f4")
    w[:, 3] = 1
    with conv.flags(algorithm="bfloat16"):
        found = engine.conv_forward(x, w)
        # The same numbers as weights, beside ones.
        ones = np.zeros((1, 8, 1, 1), "f4")
        ones[:, 3] = 1
        turned = engine.conv_forward(ones, np.ascontiguousarray(x.transpose(3, 1, 0, 2)))
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(found[0, 0, 0], wanted)
    np.testing.assert_array_equal(turned[0, finite, 0, 0], wanted[finite])


# Run in a child too, at each level of instructions.
CHECK = f"LAYERS = {LAYERS}\n" + "\n".join(map(inspect.getsource, (arrays_of, passes_of, digests)))


@pytest.mark.subprocess
@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
@pytest.mark.parametrize("level", _isa.names())
def test_bits_are_the_same_at_every_instruction_set(run_child, level, layout):
    program = f"""
import os
os.environ["CONVCORE_ISA"] = {level!r}
import hashlib
import json
import numpy as np
from convcore import engine
from convcore.backends import conv
from convcore.engine.runtime import _isa
assert _isa.bfloat16_name() == {level!r}
{CHECK}
print(json.dumps(digests(LAYERS, {layout!r})))
"""
    assert json.loads(run_child(program)) == digests(LAYERS, layout)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_bits_are_the_same_in_a_forked_child(threads):
    threads(2)
    wanted = str(digests(LAYERS, "channels_last"))
    assert in_fork(lambda: str(digests(LAYERS, "channels_last"))) == wanted


def test_tiles_are_multiplied_on_processors_that_have_them_alone():
    assert _isa.bfloat16_name() != "amx" or {"amx_tile", "amx_bf16"} <= cpu_flags()


@pytest.mark.parametrize("count", [2, 3, 7])
def test_bits_do_not_depend_on_the_number_of_threads(count, threads):
    threads(1)
    alone = digests(LAYERS, "channels_last")
    threads(count)
    assert digests(LAYERS, "channels_last") == alone


def test_it_is_taken_only_where_it_is_allowed_and_pays(monkeypatch):
    monkeypatch.setattr(_isa, "bfloat16_is_emulated", lambda: False)
    pointwise, same, few = LAYERS["1x1"], ((2, 64, 24, 24), (64, 64, 3, 3), {"padding": 1}), (
        (2, 16, 14, 14), (64, 16, 1, 1), {},
    )  # fmt: skip
    assert "bfloat16" not in {plan.algorithm for plan in plans_of(*pointwise)}
    refused = dict(plans_of(*pointwise, fp32_precision="ieee")[0].refused)
    assert refused["bfloat16"] == "fp32_precision is not 'bf16'"
    assert {plan.algorithm for plan in plans_of(*pointwise, fp32_precision="bf16")} == {"bfloat16"}
    assert {plan.algorithm for plan in plans_of(*same, fp32_precision="bf16")} == {"winograd"}
    assert "bfloat16" not in {plan.algorithm for plan in plans_of(*few, fp32_precision="bf16")}
    strict = plans_of(*pointwise, fp32_precision="bf16", strict=True)
    assert "bfloat16" not in {plan.algorithm for plan in strict}
    monkeypatch.setattr(_isa, "bfloat16_is_emulated", lambda: True)
    problem = dense_problem("forward", make_geometry(*pointwise[:2]), np.dtype("f4"), True)
    assert "float32 is as fast" in bfloat16.BFLOAT16.unprofitable(problem)


def test_a_bias_and_an_activation_are_of_float32(rng):
    x, w, _ = arrays_of(*LAYERS["1x1"], "channels_last")
    bias = rng.standard_normal(128).astype("f4")
    with conv.flags(algorithm="bfloat16"):
        plain, biased = engine.conv_forward(x, w), engine.conv_forward(x, w, bias)
    np.testing.assert_array_equal(biased, plain + bias[:, None, None])


@pytest.mark.parametrize("layout", ["strided", "permuted"])
def test_arrays_of_any_strides_give_the_same_numbers(layout, rng):
    x, w, y = arrays_of(*LAYERS["3x3 stride 2"], "contiguous")
    steps = LAYERS["3x3 stride 2"][2]
    with conv.flags(algorithm="bfloat16"):
        plain = list(passes_of(engine, x, w, y, steps))
        laid = list(passes_of(engine, *(lay_out(a, layout, rng) for a in (x, w, y)), steps))
    for one, other in zip(plain, laid, strict=True):
        np.testing.assert_array_equal(one, other)
