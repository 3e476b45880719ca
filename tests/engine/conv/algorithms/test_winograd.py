"""Winograd's method: its error, where it runs and where not, its memory, the same bits always."""

from __future__ import annotations

import inspect
import json
import random
import sys

import numpy as np
import pytest

from convcore import backends, engine
from convcore.engine import reference
from convcore.engine.runtime import _isa

EPS = 2.0**-23
MOST_EPS = 12


def drawn_case(draw: random.Random) -> tuple[dict, dict]:
    """Draw sizes, and the parameters of a convolution, that the method can do."""
    kernel = draw.choice([(3, 3), (3, 3), (3, 3), (5, 5), (4, 4), (2, 2), (3, 2), (5, 3)])
    stride = draw.choice([(1, 1), (1, 1), (2, 2), (1, 2), (2, 1)])
    dilation = draw.choice([(1, 1), (2, 2), (1, 3)]) if stride == (1, 1) else (1, 1)
    groups = draw.choice([1, 1, 1, 2])
    least = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    sizes = {
        "n": draw.choice([1, 2, 3]),
        "c": groups * draw.choice([16, 17, 20, 32, 66]),
        "o": groups * draw.choice([16, 19, 33, 64, 70]),
        "kernel": kernel,
        "input": [
            draw.randint(n, draw.choice([9, 20, 20, 76])) for n in map(lambda n: min(n, 9), least)
        ],
    }
    sizes["input"] = [max(a, b) for a, b in zip(sizes["input"], least, strict=True)]
    padding = draw.choice([0, 1, 2, ((1, 0), (0, 2)), 3])
    return sizes, {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}


def in_memory(array: np.ndarray, draw: random.Random) -> np.ndarray:
    """Lay an array out in one of the formats, perhaps between NaN that must not be read."""
    last = draw.random() < 0.5
    if draw.random() < 0.5:
        around = [(0, 0), (0, 0), (1, 2), (2, 1)]
        if last:
            around[1] = (3, 1)
        big = np.pad(array, around, constant_values=np.nan)
        if last:
            big = np.ascontiguousarray(big.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
        cut = [slice(a, n - b) for (a, b), n in zip(around, big.shape, strict=True)]
        return big[tuple(cut)]
    if last:
        return np.ascontiguousarray(array.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    return array


def largest_errors(seed: int, cases: int) -> dict[str, float]:
    """Return the largest error of each pass over drawn cases: eps of the largest sum of sizes."""
    worst = {"forward": 0.0, "input_grad": 0.0, "weight_grad": 0.0}
    for case in range(cases):
        draw, rng = random.Random(f"{seed} {case}"), np.random.default_rng([seed, case])
        sizes, steps = drawn_case(draw)
        x = rng.standard_normal((sizes["n"], sizes["c"], *sizes["input"]), np.float32)
        w = rng.standard_normal(
            (sizes["o"], sizes["c"] // steps["groups"], *sizes["kernel"]), np.float32
        )
        b = rng.standard_normal(sizes["o"], np.float32)
        x, w = in_memory(x, draw), in_memory(w, draw)
        with backends.conv.flags(algorithm="winograd"):
            y = engine.conv_forward(x, w, b, **steps)
            gy = in_memory(rng.standard_normal(y.shape, np.float32), draw)
            gx = engine.conv_input_grad(gy, w, tuple(sizes["input"]), **steps)
            gw = engine.conv_weight_grad(x, gy, sizes["kernel"], **steps)
        found = {
            "forward": (y, reference.conv_forward, (x, w, b)),
            "input_grad": (gx, reference.conv_input_grad, (gy, w, tuple(sizes["input"]))),
            "weight_grad": (gw, reference.conv_weight_grad, (x, gy, sizes["kernel"])),
        }
        for name, (result, oracle, arguments) in found.items():
            wide = [a.astype(np.float64) if isinstance(a, np.ndarray) else a for a in arguments]
            scale = [abs(a) if isinstance(a, np.ndarray) else a for a in wide]
            exact, bound = oracle(*wide, **steps), oracle(*scale, **steps).max()
            error = abs(result - exact).max() / bound / EPS
            assert np.isfinite(error), (name, sizes, steps)
            worst[name] = max(worst[name], float(error))
    return worst


# Run in a child too, at each level of instructions.
CHECK = "\n".join(map(inspect.getsource, (drawn_case, in_memory, largest_errors)))


def test_winograd_agrees_with_the_oracle(seed):
    errors = largest_errors(seed, 60)
    assert max(errors.values()) < MOST_EPS, errors


@pytest.mark.subprocess
@pytest.mark.parametrize("level", _isa.names()[:-1])  # the last is tested in this process
def test_winograd_agrees_at_every_instruction_set(run_child, seed, level):
    program = f"""
import os
os.environ["CONVCORE_ISA"] = {level!r}
import json, random
import numpy as np
from convcore import backends, engine
from convcore.engine import reference
from convcore.engine.runtime import _isa
EPS = 2.0**-23
assert _isa.name() == {level!r}
{CHECK}
print(json.dumps(largest_errors({seed}, 25)))
"""
    errors = json.loads(run_child(program))
    assert max(errors.values()) < MOST_EPS, errors


def plan_of(input_shape, weight_shape, dtype="float32", channels_last=False, **steps):
    return engine.plan_conv(
        engine.make_geometry(input_shape, weight_shape, **steps), dtype, channels_last
    )


def algorithms(plan) -> list[str]:
    return [plan.forward.algorithm, plan.input_grad.algorithm, plan.weight_grad.algorithm]


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize(
    ("shape", "made", "steps"),
    [
        ((8, 64, 56, 56), 64, {}),
        ((8, 128, 28, 28), 128, {}),
        ((8, 256, 14, 14), 256, {}),
        ((1, 64, 56, 56), 64, {}),
        ((2, 64, 224, 224), 64, {}),
        ((8, 256, 28, 28), 256, {"padding": 2, "dilation": 2}),
    ],
)
def test_layers_of_three_by_three_are_done_by_winograd(shape, made, steps, channels_last):
    plan = plan_of(
        shape, (made, shape[1], 3, 3), channels_last=channels_last, **{"padding": 1} | steps
    )
    assert algorithms(plan) == ["winograd"] * 3
    direct = made * shape[1] * 9 * shape[0] * shape[2] * shape[3]
    for map_plan in (plan.forward, plan.input_grad, plan.weight_grad):
        assert map_plan.multiply_adds < direct / 2.9


def test_winograd_keeps_to_float32_and_many_channels():
    assert "winograd" not in algorithms(plan_of((2, 64, 28, 28), (64, 64, 3, 3), "float64"))
    assert "winograd" not in algorithms(plan_of((2, 15, 28, 28), (64, 15, 3, 3)))
    assert "winograd" not in algorithms(plan_of((2, 64, 28, 28), (15, 64, 3, 3)))
    assert "winograd" not in algorithms(plan_of((2, 60, 28, 28), (60, 15, 3, 3), groups=4))


def test_forced_winograd_leaves_small_integers_exact(rng):
    x = rng.integers(-4, 5, (2, 15, 12, 12)).astype(np.float32)
    w = rng.integers(-4, 5, (32, 15, 3, 3)).astype(np.float32)
    with backends.conv.flags(algorithm="winograd"):
        y = engine.conv_forward(x, w, padding=1)
    np.testing.assert_array_equal(y, reference.conv_forward(x, w, padding=1))


def test_strict_mode_refuses_winograd(rng):
    x = rng.standard_normal((2, 64, 20, 20), np.float32)
    w = rng.standard_normal((64, 64, 3, 3), np.float32)
    with backends.conv.flags(strict=True):
        assert algorithms(plan_of(x.shape, w.shape, padding=1))[0] != "winograd"
        direct = engine.conv_forward(x, w, padding=1)
    assert (engine.conv_forward(x, w, padding=1) != direct).any()
    np.testing.assert_allclose(engine.conv_forward(x, w, padding=1), direct, atol=1e-3)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("channels", [16, 64, 80, 512, 2048])
@pytest.mark.parametrize(("kernel", "stride"), [(3, 1), (5, 2), (5, 1), (4, 2)])
def test_winograd_keeps_within_its_memory(channels, kernel, stride, channels_last):
    shape = (channels, channels, kernel, kernel)
    with backends.conv.flags(algorithm="winograd"):
        plan = plan_of((4, channels, 30, 30), shape, channels_last=channels_last, stride=stride)
    # Weights are filled up to whole panels, so fewer channels than a panel has count as a panel.
    filled = 4 * channels * -(-channels // _isa.panel()) * _isa.panel() * kernel**2
    for map_plan in (plan.forward, plan.input_grad, plan.weight_grad):
        assert map_plan.scratch_bytes <= 8 << 20
        if map_plan.algorithm == "winograd":
            most = 32 << 20 if map_plan is plan.weight_grad else 4 * filled
            assert map_plan.shared_bytes <= most
    assert channels < 80 or algorithms(plan) == ["winograd"] * 3


def test_winograd_memory_does_not_grow_with_the_batch():
    for sizes in ((64, 56, 56), (512, 28, 28)):
        few = plan_of((32, *sizes), (64, sizes[0], 3, 3), padding=1)
        many = plan_of((128, *sizes), (64, sizes[0], 3, 3), padding=1)
        for name in ("forward", "input_grad", "weight_grad"):
            small, large = getattr(few, name), getattr(many, name)
            assert (small.scratch, small.shared) == (large.scratch, large.shared)


BITS = """
import hashlib, sys
import numpy as np
from convcore import engine
from convcore.engine import set_num_threads

def digest(*arrays):
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()

def last(a):
    return np.ascontiguousarray(a.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)

rng = np.random.default_rng(3)
for n, c, size, o, k, s, p, d in [
    (3, 64, 30, 64, 3, 1, 1, 1),
    (8, 256, 7, 192, 3, 1, 1, 1),
    (2, 32, 28, 48, 5, 2, 2, 1),
    (2, 32, 28, 48, 3, 1, 2, 2),
]:
    x = rng.standard_normal((n, c, size, size), np.float32)
    w = rng.standard_normal((o, c, k, k), np.float32)
    steps = {"stride": s, "padding": p, "dilation": d}
    y = engine.conv_forward(x, w, **steps)
    for form in (np.ascontiguousarray, last):
        gy = form(rng.standard_normal(y.shape, np.float32))
        a, b = form(x), form(w)
        found = set()
        for threads in (1, 2, 3, 7):
            set_num_threads(threads)
            found.add(digest(
                engine.conv_forward(a, b, **steps),
                engine.conv_input_grad(gy, b, (size, size), **steps),
                engine.conv_weight_grad(a, gy, (k, k), **steps),
            ))
        assert len(found) == 1, (n, c, size, o, k, s, p, d, form)
print("same")
"""


@pytest.mark.subprocess
@pytest.mark.parametrize("coretype", [None, "Haswell"])
def test_winograd_bits_do_not_depend_on_the_number_of_threads(run_child, coretype):
    if coretype and not sys.platform.startswith("linux"):
        pytest.skip("Haswell is OpenBLAS's name on x86")
    assert run_child(BITS, coretype=coretype).strip() == "same"


def test_nan_stays_within_its_tile(rng):
    """A NaN reaches whole tiles of outputs, and no others: the switch's documentation says so."""
    x = rng.standard_normal((1, 32, 40, 40), np.float32)
    w = rng.standard_normal((32, 32, 3, 3), np.float32)
    x[0, 5, 20, 20] = np.nan
    y = engine.conv_forward(x, w, padding=1)
    rows, columns = np.nonzero(np.isnan(y).any(axis=(0, 1)))
    assert {19, 20, 21} <= set(rows)
    assert rows.min() >= 16
    assert rows.max() <= 23
    assert columns.min() >= 16
    assert columns.max() <= 23
