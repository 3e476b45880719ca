"""NaN, infinities, denormals, the floating-point mode, and errors: what docs/numerics.md states."""

from __future__ import annotations

import ctypes
import itertools
import platform
from collections.abc import Iterator

import numpy as np
import pytest
from scripts import load_script

from convcore import engine
from convcore.bench.layers import PASSES, parse_layer, pass_calls
from convcore.engine import reference
from convcore.engine.conv.algorithms import ALGORITHMS
from convcore.engine.conv.selection import selected
from convcore.engine.runtime import _threads
from convcore.verify.cases import Case, parse_case
from convcore.verify.checks import _FACTORS, _taken

LAYERS = ("1,16,14,14,16,3,1,1", "1,3,14,14,16,3,2,1", "1,16,9,9,16,3,1,1,1,16")
LAYERS += ("1,16,9,9,16,3,1,1,1,4", "1,16,9,9,16,1", "1,16,14,14,16,3,2,1", "1,3,8,12,16,8,4,4")
CASES = tuple(
    parse_case(f"{spec} float32 {layout}/{layout}/{layout} integers 1")
    for spec, layout in itertools.product(LAYERS, ("contiguous", "channels_last"))
)


def results(
    case: Case, pass_name: str, operands: dict[str, np.ndarray]
) -> Iterator[tuple[str, bool, np.ndarray]]:
    """Yield (algorithm, whether it is a direct sum, result) of each that can compute a pass."""
    for algorithm in ALGORITHMS:
        if pass_name in algorithm.passes:
            with selected(algorithm=algorithm.name):
                if _taken(case, pass_name, operands) == algorithm.name:
                    result = pass_calls(engine, case.layer, operands)[pass_name]()
                    yield algorithm.name, algorithm.direct, result


def used(case: Case, pass_name: str, name: str, index: tuple[int, ...]) -> np.ndarray:
    """Return which results have a product with one element of an operand."""
    marks = {key: np.ones(a.shape) for key, a in case.operands().items()}
    marks[name][...] = 0
    marks[name][index] = 1
    return pass_calls(reference, case.layer, marks)[pass_name]() != 0


def padding_used(case: Case, pass_name: str, name: str, index: tuple[int, ...]) -> np.ndarray:
    """Return the same, products with the zeros of the padding among them, and more."""
    if (pass_name, name) in (("forward", "input"), ("input_grad", "grad_output")):
        return used(case, pass_name, name, index)
    found = used(case, pass_name, name, index)
    axes = tuple(range(2, found.ndim))
    return np.broadcast_to(found.any(axis=axes, keepdims=True), found.shape)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_reaches_the_sums_that_it_is_in_and_no_others(value):
    seen = set()
    for case, pass_name in itertools.product(CASES, PASSES):
        for name, corner in itertools.product(_FACTORS[pass_name], (False, True)):
            operands = {key: np.abs(a) + 1 for key, a in case.operands().items()}
            index = tuple(0 if corner else size // 2 for size in operands[name].shape)
            operands[name][index] = value
            least = used(case, pass_name, name, index)
            most = padding_used(case, pass_name, name, index)
            for algorithm, direct, result in results(case, pass_name, operands):
                spoilt, what = ~np.isfinite(result), f"{algorithm} {pass_name} {name} {case.text}"
                assert spoilt[least].all(), what
                if direct:
                    assert not spoilt[~most].any(), what
                    # Of one sign elsewhere: the sum is what the value makes of it.
                    np.testing.assert_array_equal(result[least], value, err_msg=what)
                seen.add(algorithm)
    assert seen == {algorithm.name for algorithm in ALGORITHMS}


@pytest.mark.parametrize("threads_used", [1, 2])
def test_denormals_are_exact_in_direct_sums(threads, threads_used):
    threads(threads_used)
    _threads.set_limit(threads_used, 1)  # however little work there is
    unit = 2.0**-149
    for case, pass_name in itertools.product(CASES, PASSES):
        for name in _FACTORS[pass_name]:
            operands = case.operands()
            wide = {key: a.astype("f8") for key, a in operands.items()}
            wide[name] = wide[name] * unit
            operands[name] = np.multiply(operands[name], unit, dtype="f8").astype("f4", order="K")
            exact = pass_calls(reference, case.layer, wide)[pass_name]()
            assert 0 < np.abs(exact).max() < 2.0**-126
            for algorithm, direct, result in results(case, pass_name, operands):
                what = f"{algorithm} {pass_name} {name} {case.text}"
                if direct:
                    np.testing.assert_array_equal(result, exact, err_msg=what)
                else:  # transforms divide by up to 24: 1,132 units seen
                    assert np.abs(result - exact).max() <= 4096 * unit, what


class Mode(ctypes.Structure):
    """glibc's fenv_t on x86-64: the x87's environment, then MXCSR."""

    _fields_ = (("x87", ctypes.c_uint32 * 7), ("mxcsr", ctypes.c_uint32))


STATUS, FLUSH, UPWARD = 0x3F, 0x8040, 0x4000


@pytest.mark.skipif(
    platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc",
    reason="the mode is read as glibc stores it on x86-64",
)
@pytest.mark.parametrize("bits", [0, FLUSH, UPWARD])
def test_floating_point_mode_is_left_as_it_was(bits, threads):
    threads(2)
    library = ctypes.CDLL("libm.so.6")
    found, mode, after = Mode(), Mode(), Mode()
    library.fegetenv(ctypes.byref(found))
    library.fegetenv(ctypes.byref(mode))
    mode.mxcsr |= bits
    cases = [case for case in CASES if case.layouts[0] == "contiguous"]
    try:
        library.fesetenv(ctypes.byref(mode))
        for case, pass_name in itertools.product(cases, PASSES):
            for _ in results(case, pass_name, case.operands()):
                pass
        library.fegetenv(ctypes.byref(after))
    finally:
        library.fesetenv(ctypes.byref(found))
    assert after.mxcsr & ~STATUS == mode.mxcsr & ~STATUS
    assert after.x87[0] == mode.x87[0]


def test_errors_on_real_layers_are_within_the_stated_bounds(monkeypatch):
    numerics = load_script(monkeypatch, "numerics")
    layers = [parse_layer(spec) for spec in ("1,64,14,14,64,3,1,1", "1,400,9,9,32,3,1,1")]
    largest, own, found, _ = numerics.measure(layers, list(numerics.KINDS))
    assert not found
    assert ("winograd", "normal") in largest
    # The bound for numbers of one sign is not there for nothing, nor is the one of Winograd.
    assert max(largest["chosen", "positive"]) > max(largest["chosen", "normal"])
    assert max(own["winograd", "scaled_pixels"]) > 1000
    assert max(own["im2col", "scaled_pixels"]) < 50
