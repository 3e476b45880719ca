"""Functions run without NumPy's warnings, and the caller's settings stay whatever comes between."""

import contextvars
import itertools

import numpy as np
import pytest
from interrupting import interrupted_at

import convcore
from convcore.engine.runtime.errstate import quiet, quiet_copy

VARIABLE = contextvars.ContextVar("a caller's", default=0)


@pytest.mark.parametrize("call", [quiet, quiet_copy])
def test_warnings_are_off_inside_and_as_they_were_outside(call):
    with np.errstate(all="raise"):
        before = np.geterr()
        assert call(np.log, np.zeros(1))[0] == -np.inf
        assert call(lambda: call(np.log, np.zeros(1)))[0] == -np.inf
        with pytest.raises(RuntimeError, match="the function's own"):
            call(fail)
        assert np.geterr() == before


def fail():
    raise RuntimeError("the function's own")


def test_a_function_is_called_once_where_it_raises():
    calls = []

    def note():
        calls.append(1)
        fail()

    with pytest.raises(RuntimeError):
        quiet(note)
    assert len(calls) == 1


def test_a_copy_has_the_callers_variables():
    token = VARIABLE.set(3)
    try:
        assert quiet_copy(VARIABLE.get) == 3
    finally:
        VARIABLE.reset(token)


COMPUTATIONS = {
    "a cast": lambda: convcore.full((2,), 1e30).to(convcore.float16),
    "a creation": lambda: convcore.linspace(0, 1, 3, dtype=convcore.float16),
    "random numbers": lambda: convcore.normal(convcore.zeros(2), convcore.ones(2)),
    "a backward pass": lambda: (
        (convcore.ones(2, dtype=convcore.bfloat16, requires_grad=True) * 2).sum().backward()
    ),
    "a gelu": lambda: convcore.nn.functional.gelu(convcore.ones(4, dtype=convcore.float16)),
}


@pytest.mark.parametrize("compute", COMPUTATIONS.values(), ids=list(COMPUTATIONS))
def test_an_interrupt_leaves_the_settings(compute):
    before = np.geterr()
    for _ in range(2):
        compute()
    for number in itertools.count():
        if not interrupted_at(number, compute):
            break
        assert np.geterr() == before
