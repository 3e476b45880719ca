"""What the tests of the direct kernels share: drawn layers, guarded memory, errors by the oracle.

Children import this file too, one a level of instructions.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np

from convcore import backends, engine
from convcore.engine import reference

EPS = 2.0**-23
PASSES = ("forward", "input_grad", "weight_grad")


# Kernels to draw from; the long ones for layers of one channel a group.
KERNELS = {
    1: [(3,), (5,), (9,)],
    2: [(3, 3), (3, 3), (5, 5), (7, 7), (1, 1), (2, 3), (4, 4), (1, 5), (9, 2)],
    3: [(3, 3, 3), (5, 3, 3), (1, 5, 5), (1, 3, 3), (2, 1, 4), (3, 1, 1)],
}
LONG_KERNELS = {1: [(70,), (31,)], 2: [(31, 3), (5, 51)], 3: [(3, 11, 9), (9, 1, 2)]}


def drawn_layer(draw: random.Random, groups: list[tuple[int, int, int]]) -> dict[str, Any]:
    """Draw a layer; groups: (groups, channels read, channels made of one group) to draw from."""
    number, c, o = draw.choice(groups)
    rank = draw.choice([1, 2, 2, 2, 3, 3])
    kernel = draw.choice(KERNELS[rank] + LONG_KERNELS[rank] * (c == o == 1))
    stride = draw.choice(
        [(1, 1, 1), (1, 1, 1), (2, 2, 2), (2, 2, 2), (3, 3, 3), (1, 1, 2), (2, 2, 1)]
    )
    dilation = draw.choice([(1, 1, 1), (1, 1, 1), (1, 1, 1), (2, 2, 2), (2, 1, 3)])
    stride, dilation = stride[-rank:], dilation[-rank:]
    same = [k // 2 for k in kernel]
    others = [[0, 0, 0], [0, 1, 2], [(1, 0), (0, 2), (3, 1)], [3, 4, 4]]
    padding = draw.choice([same, same, same, *(p[-rank:] for p in others)])
    pads = [p if isinstance(p, tuple) else (p, p) for p in padding]
    least = [
        max(1, d * (k - 1) + 1 - sum(p)) for d, k, p in zip(dilation, kernel, pads, strict=True)
    ]
    size = [draw.randint(1, draw.choice([8, 20, 40])) for _ in kernel]
    if rank == 3:
        size = [min(n, 14) for n in size]
    return {
        "input": (draw.choice([1, 2, 3]), number * c, *map(max, size, least)),
        "weight": (number * o, c, *kernel),
        "steps": {"stride": stride, "padding": pads, "dilation": dilation, "groups": number},
    }


def laid_out(array: np.ndarray, channels_last: bool) -> np.ndarray:
    """Copy an array into one of the formats, right before memory that nobody may read.

    Arrays of one spatial axis have one format.
    """
    if channels_last and array.ndim > 3:
        return np.moveaxis(guarded(np.moveaxis(array, 1, -1)), -1, 1)
    return guarded(array)


def guarded(array: np.ndarray) -> np.ndarray:
    """Copy an array so that it ends with a page, before one that traps (on Linux)."""
    if not sys.platform.startswith("linux"):
        return array.copy(order="C")
    page = mmap.PAGESIZE
    whole = -(-array.nbytes // page) * page
    memory = mmap.mmap(-1, whole + page)
    flat = np.frombuffer(memory, np.uint8)
    libc = ctypes.CDLL(None, use_errno=True)
    failed = libc.mprotect(ctypes.c_void_p(flat.ctypes.data + whole), ctypes.c_size_t(page), 0)
    assert not failed
    copy = flat[whole - array.nbytes : whole].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def results(
    layer: dict[str, Any], x: np.ndarray, w: np.ndarray, b: np.ndarray, gy: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the three passes of a layer's arrays."""
    steps = layer["steps"]
    return {
        "forward": engine.conv_forward(x, w, b, **steps),
        "input_grad": engine.conv_input_grad(gy, w, x.shape[2:], **steps),
        "weight_grad": engine.conv_weight_grad(x, gy, w.shape[2:], **steps),
    }


def exact(
    layer: dict[str, Any], x: np.ndarray, w: np.ndarray, b: np.ndarray, gy: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the same by the oracle."""
    steps = layer["steps"]
    x, w, b, gy = (a.astype(np.float64) for a in (x, w, b, gy))
    return {
        "forward": reference.conv_forward(x, w, b, **steps),
        "input_grad": reference.conv_input_grad(gy, w, x.shape[2:], **steps),
        "weight_grad": reference.conv_weight_grad(x, gy, w.shape[2:], **steps),
    }


def layer_arrays(
    layer: dict[str, Any], rng: np.random.Generator, channels_last: bool, integers: bool = False
) -> list[np.ndarray]:
    """Return input, weight, bias and gradient of a layer."""
    geometry = engine.make_geometry(layer["input"], layer["weight"], **layer["steps"])
    shapes = (layer["input"], layer["weight"], (layer["weight"][0],), geometry.output_shape)
    made = [
        rng.integers(-3, 4, shape).astype(np.float32)
        if integers
        else rng.standard_normal(shape, np.float32)
        for shape in shapes
    ]
    return [laid_out(a, channels_last) if a.ndim > 1 else guarded(a) for a in made]


def chosen(layer: dict[str, Any], channels_last: bool) -> dict[str, str]:
    """Return the algorithms of a layer's passes."""
    geometry = engine.make_geometry(layer["input"], layer["weight"], **layer["steps"])
    plan = engine.plan_conv(geometry, "float32", channels_last)
    return {name: getattr(plan, name).algorithm for name in PASSES}


def largest_errors(
    algorithm: str, groups: list[tuple[int, int, int]], seed: int, cases: int
) -> dict[str, float]:
    """Return the largest error of each pass over drawn layers: eps of the largest sum of sizes."""
    worst = dict.fromkeys(PASSES, 0.0)
    for case in range(cases):
        draw, rng = random.Random(f"{seed} {case}"), np.random.default_rng([seed, case])
        layer = drawn_layer(draw, groups)
        channels_last = draw.random() < 0.5
        arrays = layer_arrays(layer, rng, channels_last)
        with backends.conv.flags(algorithm=algorithm):
            assert chosen(layer, channels_last)["forward"] == algorithm, layer
            found = results(layer, *arrays)
        wanted, bounds = exact(layer, *arrays), exact(layer, *map(np.abs, arrays))
        for name in PASSES:
            # Nothing but padding is summed where the bound is 0.
            error = np.abs(found[name] - wanted[name]).max() / EPS
            if error != 0:
                error /= bounds[name].max()
            assert np.isfinite(error), (name, layer)
            worst[name] = max(worst[name], float(error))
    return worst


def errors_of_a_child(
    run_child: Any, level: str, algorithm: str, groups: list[tuple[int, int, int]], seed: int
) -> dict[str, float]:
    """Return the largest errors at one level of instructions."""
    program = f"""
import os, sys
os.environ["CONVCORE_ISA"] = {level!r}
sys.path.insert(0, {str(Path(__file__).parent)!r})
import json
from convcore.engine.runtime import _isa
from direct_checks import largest_errors
assert _isa.name() == {level!r}
print(json.dumps(largest_errors({algorithm!r}, {groups!r}, {seed}, 40)))
"""
    return json.loads(run_child(program))


def check_integers(layer: dict[str, Any], rng: np.random.Generator, channels_last: bool) -> None:
    """Assert that small integers give exact integers."""
    arrays = layer_arrays(layer, rng, channels_last, integers=True)
    found, wanted = results(layer, *arrays), exact(layer, *arrays)
    for name in PASSES:
        np.testing.assert_array_equal(found[name], wanted[name], err_msg=f"{name} {layer}")


def check_nan(layer: dict[str, Any], rng: np.random.Generator, channels_last: bool) -> None:
    """Assert that a NaN reaches what looks at it, and nothing else."""
    for spoilt, names in ((0, ("forward", "weight_grad")), (3, ("input_grad",))):
        arrays = layer_arrays(layer, rng, channels_last)
        spatial = arrays[spoilt].ndim - 2
        arrays[spoilt][0, :, *[-1] * spatial] = np.nan
        arrays[spoilt][-1, -1, 0, *[-1] * (spatial - 1)] = np.nan
        found, wanted = results(layer, *arrays), exact(layer, *arrays)
        for name in names:
            np.testing.assert_array_equal(
                np.isnan(found[name]), np.isnan(wanted[name]), err_msg=f"{name} {layer}"
            )


def check_threads(
    layer: dict[str, Any], rng: np.random.Generator, channels_last: bool, threads: Any
) -> None:
    """Assert the same bits for any number of threads."""
    arrays = layer_arrays(layer, rng, channels_last)
    threads(1)
    one = results(layer, *arrays)
    for count in (2, 3, 7):
        threads(count)
        for name, result in results(layer, *arrays).items():
            np.testing.assert_array_equal(result, one[name], err_msg=f"{count} {name}")
