"""One case by every algorithm: errors in eps, and digests of results that must not differ."""

from __future__ import annotations

import functools
import hashlib
import json
import math
import os
import signal
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from convcore import engine
from convcore.bench.layers import pass_calls
from convcore.engine import reference
from convcore.engine.conv.algorithms import ALGORITHMS
from convcore.engine.conv.call import cached_plan
from convcore.engine.conv.problem import FORWARD, INPUT_GRAD, WEIGHT_GRAD
from convcore.engine.conv.selection import current, selected
from convcore.engine.runtime import _threads
from convcore.engine.runtime.checks import whole_elements
from convcore.engine.runtime.restoring import Calls, restoring
from convcore.engine.runtime.threads import LEAST_PARALLEL_WORK
from convcore.verify.cases import Case

# In units of the dtype's eps, out of the largest sum of absolute products: direct sums, others.
# The tests hold the algorithms to the same (tests/engine/conv/algorithms/test_algorithms.py).
MOST_EPS = {True: 4.0, False: 12.0}
# More for numbers of one sign: their sum is the bound itself, and the rounding errors of a running
# sum grow with the root of its terms.  1.5 times the most that was seen, 33 eps of 4,608 products
# in one chain (few_channels, which leaves such sums to others since).
_EPS_OF_ROOT_TERMS = 0.75
# Seconds after which a forked child hangs.
_PATIENCE = 60
# More than the cores of most machines: a thread more only makes other cuts between threads.
THREADS = (1, 2, 3, 8)
_FACTORS = {
    FORWARD: ("input", "weight"),
    INPUT_GRAD: ("grad_output", "weight"),
    WEIGHT_GRAD: ("input", "grad_output"),
}


class Result(NamedTuple):
    """What one algorithm made of one pass."""

    pass_name: str
    algorithm: str
    array: np.ndarray


def results(case: Case) -> Iterator[Result]:
    """Yield each pass of a case by each algorithm that can compute it."""
    operands = case.operands()
    calls = pass_calls(engine, case.layer, operands)
    for pass_name, call in calls.items():
        for algorithm in ALGORITHMS:
            if pass_name not in algorithm.passes:
                continue
            with selected(algorithm=algorithm.name):
                if _taken(case, pass_name, operands) == algorithm.name:
                    yield Result(pass_name, algorithm.name, call())


def errors(case: Case) -> Iterator[tuple[str, str, float]]:
    """Yield (pass, algorithm, error in eps) of a case; inf for NaN and a wrong shape or dtype."""
    operands = case.operands()
    rounds = {algorithm.name: algorithm.rounds for algorithm in ALGORITHMS}

    @functools.cache
    def expected(rounded: bool) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        used = operands
        if rounded:
            used = {name: reference.rounded_to_bfloat16(one) for name, one in operands.items()}
        return _expected(case, used)

    for pass_name, algorithm, array in results(case):
        exact, bound = expected(rounds[algorithm])[pass_name]
        yield pass_name, algorithm, _error(array, exact, bound, case.dtype)


def _expected(
    case: Case, operands: dict[str, np.ndarray]
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the oracle's answer for each pass, and the sum of absolute products behind it."""
    exact = pass_calls(reference, case.layer, operands)
    magnitudes = {name: np.abs(array) for name, array in operands.items()}
    bounds = pass_calls(reference, case.layer, magnitudes)
    return {name: (exact[name](), bounds[name]()) for name in exact}


def allowed_eps(case: Case, pass_name: str, algorithm: str) -> float:
    """Return the largest error that an algorithm may have in one pass of a case.

    References
    ----------
    Higham & Mary 2019, "A new approach to probabilistic rounding error analysis": the root.
    """
    allowed = MOST_EPS[next(a.direct for a in ALGORITHMS if a.name == algorithm)]
    if case.values == "positive":
        allowed += _EPS_OF_ROOT_TERMS * math.sqrt(_terms(case, pass_name))
    return allowed * _padded_share(case, pass_name) if algorithm == "winograd" else allowed


def _terms(case: Case, pass_name: str) -> int:
    """Return how many products an element of a pass's result is the sum of, at most."""
    g = case.layer.geometry
    if pass_name == WEIGHT_GRAD:
        return g.n * math.prod(g.output_shape[2:])
    return math.prod(case.layer.kernel) * (g.c_in if pass_name == FORWARD else g.c_out) // g.groups


def _padded_share(case: Case, pass_name: str) -> float:
    """Return how many times as many terms a sum has as it has outside of the padding, at least.

    Winograd's transforms mix all taps of a kernel, so that its errors are those of whole sums.  An
    image smaller than the kernel has none: the sums that errors are measured by lack terms.
    """
    g = case.layer.geometry
    image, outs = g.input_shape[2:], g.output_shape[2:]
    summed, there = {
        FORWARD: (case.layer.kernel, image),
        INPUT_GRAD: (case.layer.kernel, outs),
        WEIGHT_GRAD: (outs, image),
    }[pass_name]
    return math.prod(max(n / max(m, 1), 1.0) for n, m in zip(summed, there, strict=True))


def digests(case: Case, threads: int = 1) -> dict[str, str]:
    """Return a digest of each result's bits, by "pass algorithm", computed by that many threads."""
    with _threads_even_if_small(threads):
        return {
            f"{pass_name} {algorithm}": hashlib.blake2b(array.tobytes(), digest_size=12).hexdigest()
            for pass_name, algorithm, array in results(case)
        }


def digests_in_child(case: Case) -> dict[str, str]:
    """Return `digests` as a forked child computes them."""
    return _in_child(lambda: digests(case, THREADS[1]))


def _taken(case: Case, pass_name: str, operands: dict[str, np.ndarray]) -> str:
    """Return the algorithm that the engine computes a pass with, under the selection in force."""
    layer = case.layer
    more: dict[str, tuple[Any, ...]] = {
        FORWARD: (),
        INPUT_GRAD: (layer.size,),
        WEIGHT_GRAD: (layer.kernel,),
    }
    key: list[Any] = []
    for name in _FACTORS[pass_name]:
        array = operands[name]
        array = array if array.flags.aligned else whole_elements(array)
        key += (array.shape, array.strides, array.dtype)
    parameters = (*layer.steps.values(), *more[pass_name])
    return cached_plan(pass_name, *key, current(), *parameters).plan.algorithm


def _error(array: np.ndarray, exact: np.ndarray, bound: np.ndarray, dtype: str) -> float:
    if array.shape != exact.shape or array.dtype != np.dtype(dtype):
        return float("inf")
    error = float(reference.error_in_eps(array, exact, bound, dtype))
    return error if error == error else float("inf")


@restoring
def _threads_even_if_small(threads: int) -> Iterator[Calls]:
    """Let the engine use that many threads, however little work there is."""
    yield ((_threads.set_limit, (engine.get_num_threads(), LEAST_PARALLEL_WORK)),)
    _threads.set_limit(threads, 1)


def _in_child(compute: Callable[[], dict[str, str]]) -> dict[str, str]:
    """Return what a forked child computes; empty if it ended without an answer, or hung."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads: our subject
        child = os.fork()
    if child == 0:
        try:
            signal.alarm(_PATIENCE)  # ends it
            os.write(writer, json.dumps(compute()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return json.loads(answer) if answer else {}
