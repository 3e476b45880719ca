"""Prove an installed convcore: `python smoke.py [LEVEL,...]`, best from an empty folder.

Imports, convolves forward and back against the slow oracle, trains a small net, and prints a line
of what it ran on. LEVELS, if given, are the instruction sets that there have to be on this
processor; CONVCORE_ISA asks for one of them. Nothing but convcore's own dependencies is needed.
"""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

import numpy as np
import scipy
import threadpoolctl

import convcore
from convcore import engine, nn
from convcore.engine import reference
from convcore.engine.runtime import _isa, threads

# Pointwise, Winograd, a stem, dilated, grouped, depthwise: the shapes of x and w, and options.
LAYERS = (
    ((2, 8, 9, 9), (12, 8, 1, 1), {}),
    ((2, 32, 14, 14), (32, 32, 3, 3), {"padding": 1}),
    ((1, 3, 21, 20), (16, 3, 7, 7), {"stride": 2, "padding": 3}),
    ((1, 16, 15, 15), (8, 16, 3, 3), {"stride": (2, 1), "dilation": 2}),
    ((2, 16, 8, 8), (32, 4, 3, 3), {"groups": 4, "padding": 1}),
    ((1, 32, 12, 12), (32, 1, 3, 3), {"groups": 32, "padding": 1}),
)


def distance(got: np.ndarray, expected: np.ndarray) -> float:
    """Give the largest difference, in units of the largest value."""
    return float(np.abs(got - expected).max() / np.abs(expected).max())


def check_layer(rng, x_shape, w_shape, dtype, options) -> None:
    """Compute the three maps in both memory formats and compare them with the oracle."""
    x = rng.standard_normal(x_shape).astype(dtype)
    w = rng.standard_normal(w_shape).astype(dtype)
    expected = reference.conv_forward(x, w, **options)
    gy = rng.standard_normal(expected.shape).astype(dtype)
    nhwc = np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    for given in (x, nhwc):
        for name, arguments in (
            ("conv_forward", (given, w)),
            ("conv_input_grad", (gy, w, x_shape[2:])),
            ("conv_weight_grad", (given, gy, w_shape[2:])),
        ):
            got = getattr(engine, name)(*arguments, **options)
            error = distance(got, getattr(reference, name)(*arguments, **options))
            what = f"{name} of {x_shape}, {w_shape}, {options}, {dtype.__name__}: off by {error}"
            assert error < 1e3 * np.finfo(dtype).eps, what


def train() -> None:
    """Let a small net learn which half of a picture is bright."""
    convcore.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 16, 2))
    optimizer = convcore.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    images = convcore.rand(32, 1, 6, 6)
    labels = (images[:, 0, :3].sum((1, 2)) > images[:, 0, 3:].sum((1, 2))).long()
    for _ in range(60):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(images), labels)
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.1, f"the net did not learn: loss {loss.item()}"


def check_threads(rng) -> None:
    """Compute with one and with two threads: the bits are the same."""
    x = rng.standard_normal((4, 32, 28, 28)).astype(np.float32)
    w = rng.standard_normal((32, 32, 3, 3)).astype(np.float32)
    results = []
    for count in (1, 2):
        convcore.set_num_threads(count)
        results.append(engine.conv_forward(x, w, padding=1).tobytes())
    assert results[0] == results[1], "the bits depend on the number of threads"


def openmp_runtime() -> str:
    """Name the runtime behind prange: an OpenMP library that is loaded must be the wheel's own."""
    package = Path(convcore.__file__).resolve().parent
    found = [
        Path(library["filepath"]).resolve()
        for library in threadpoolctl.threadpool_info()
        if library["user_api"] == "openmp"
    ]
    assert len(found) <= 1, f"more than one OpenMP runtime is loaded: {found}"
    carried = [*package.parent.glob("convcore.libs/*omp*"), *package.glob(".dylibs/*omp*")]
    if carried:
        assert [path.resolve() for path in carried] == found, f"{found} and not {carried}"
    openmp, own_pool, *_ = threads.build()
    if openmp == 0:
        return "none"
    if own_pool:
        assert not found, f"{found} is loaded beside the pool of threads"
        return "own pool"
    return f"{found[0].parent.name}/{found[0].name}" if found else "unknown"


def check_level(demanded: list[str]) -> None:
    """Compare the levels that there are, and the one in use, with what was demanded."""
    levels = _isa.names()
    assert not demanded or levels == demanded, f"levels are {levels} and not {demanded}"
    asked = os.environ.get("CONVCORE_ISA") or levels[-1]
    assert _isa.name() == asked, f"the level is {_isa.name()} and not {asked}"


def main() -> None:
    here = Path(convcore.__file__).resolve().parents[1]
    assert here not in (Path.cwd(), Path(__file__).resolve().parents[1]), f"not installed: {here}"
    check_level([level for levels in sys.argv[1:] for level in levels.split(",")])
    rng = np.random.default_rng(0)
    for x_shape, w_shape, options in LAYERS:
        for dtype in (np.float32, np.float64):
            check_layer(rng, x_shape, w_shape, dtype, options)
    check_threads(rng)
    assert threads.blas().limitable, "the threads of SciPy's BLAS cannot be held"
    train()
    print(
        f"convcore {convcore.__version__}: Python {platform.python_version()}, "
        f"NumPy {np.__version__}, SciPy {scipy.__version__}, {_isa.name()} of "
        f"{','.join(_isa.names())}, BLAS {threads.blas().architecture}, "
        f"OpenMP {openmp_runtime()}"
    )


if __name__ == "__main__":
    main()
