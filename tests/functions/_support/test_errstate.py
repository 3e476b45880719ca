"""NumPy's warnings are off inside a call, and as the caller set them everywhere else."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import convcore
from convcore.functions._support.errstate import ignore_errstate

ALL_IGNORED = dict.fromkeys(np.geterr(), "ignore")


def test_results_that_are_infinite_or_nan_come_without_warnings():
    with np.errstate(all="raise"):
        assert ignore_errstate(np.log, np.zeros(1))[0] == -np.inf
        assert np.isnan(ignore_errstate(np.subtract, np.inf, np.inf))
        assert ignore_errstate(np.exp, np.full(1, 1e9), dtype=np.float64)[0] == np.inf


@pytest.mark.parametrize("setting", ["warn", "raise", "ignore", "print"])
def test_the_callers_errstate_is_as_it_was(setting):
    with np.errstate(all=setting):
        before = np.geterr()
        assert ignore_errstate(np.geterr) == ALL_IGNORED
        with pytest.raises(KeyError):
            ignore_errstate({}.__getitem__, "nothing")
        convcore.zeros(2).log()
        assert np.geterr() == before


def test_the_users_own_calls_raise_what_they_raised_before():
    before = np.geterr()
    with np.errstate(divide="raise"):
        ignore_errstate(np.log, np.zeros(1))
        with pytest.raises(FloatingPointError):
            np.log(np.zeros(1))
    assert np.geterr() == before


def test_a_call_inside_a_call_is_free_of_warnings_too():
    def outer():
        inner = ignore_errstate(np.log, np.zeros(1))
        return inner, np.geterr()

    inner, errstate = ignore_errstate(outer)
    assert inner[0] == -np.inf
    assert errstate == ALL_IGNORED


def test_a_finalizer_that_runs_inside_a_call_may_compute():
    found = []

    class Finalized:
        def __del__(self):
            found.append(ignore_errstate(np.log, np.zeros(1))[0])

    held = [Finalized()]
    ignore_errstate(held.clear)
    assert found == [-np.inf]


def test_errors_of_the_function_come_through():
    def fail():
        raise RuntimeError("the function's own")

    with pytest.raises(RuntimeError, match="the function's own"):
        ignore_errstate(fail)


def test_threads_compute_at_the_same_time_and_keep_their_own_errstate():
    inside, found = threading.Barrier(3, timeout=20), {}

    def compute():
        inside.wait()  # all three threads are inside of a call
        return np.log(np.zeros(1))[0], np.geterr()

    def work(number, setting):
        with np.errstate(all=setting):
            before = np.geterr()
            result = ignore_errstate(compute)
            found[number] = (result, np.geterr() == before)

    threads = [threading.Thread(target=work, args=row) for row in enumerate(("raise", "warn"))]
    for thread in threads:
        thread.start()
    work(2, "raise")
    for thread in threads:
        thread.join()
    assert [found[n] for n in range(3)] == [((-np.inf, ALL_IGNORED), True)] * 3
