"""`__torch_function__`: subclasses of Tensor, other classes and modes intercept functions."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import convcore
from convcore import overrides
from convcore.overrides import watching

PROGRAM = """
import {library} as torch
from {library}.overrides import TorchFunctionMode, handle_torch_function, has_torch_function

HANDLED = {{}}

class Logged(torch.Tensor):
    calls = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs)

class Scalar:
    def __init__(self, value):
        self.value = value

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func not in HANDLED:
            return NotImplemented
        return HANDLED[func](*args, **(kwargs or {{}}))

HANDLED[torch.mean] = lambda x: x.value
HANDLED[torch.add] = lambda x, y: ("added", x.value, y)

class Names(TorchFunctionMode):
    def __init__(self):
        self.names = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {{}}))

x = torch.ones(2, 3).as_subclass(Logged)
print(type(x + 1).__name__, type(torch.relu(x)).__name__, type(x.sum(0)).__name__)
print(Logged.calls)
torch.mul(x, 2)
print(Logged.calls[-1])
print(type(torch.stack([torch.ones(2, 3), x])).__name__, type(x.max(0)[0]).__name__)
print(torch.mean(Scalar(3.0)), torch.add(Scalar(1), 2))
try:
    torch.relu(Scalar(1))
except TypeError as error:
    print("Multiple dispatch failed for 'torch.relu'" in str(error))
with Names() as mode:
    y = torch.ones(2) * 3
    torch.nn.functional.relu(y)
print([name for name in mode.names if name in ("ones", "mul", "relu")][0::2])
print(has_torch_function((x,)), has_torch_function((y,)))
weight = torch.nn.Parameter(torch.ones(2))
print(type(weight.__torch_function__(torch.neg, (dict,), (weight,))).__name__)
"""


def printed(library: str) -> list[str]:
    command = [sys.executable, "-P", "-c", PROGRAM.format(library=library)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.subprocess
def test_subclasses_other_classes_and_modes():
    assert printed("convcore") == [
        "Logged Logged Logged",
        "['add', 'relu', 'sum']",
        "mul",
        "Logged Logged",
        "3.0 ('added', 1, 2)",
        "True",
        "['ones', 'relu']",
        "True False",
        "Tensor",
    ]


@pytest.mark.subprocess
def test_the_same_program_on_pytorch(torch):
    assert printed("convcore") == printed("torch")


def test_parameters_do_not_intercept():
    parameter = convcore.nn.Parameter(convcore.ones(2))
    assert not convcore.overrides.has_torch_function((parameter, convcore.ones(1)))
    assert type(parameter + 1) is convcore.Tensor


def test_results_of_subclasses_of_parameters_are_plain_tensors(torch):
    for lib in (convcore, torch):

        class Weight(lib.nn.Parameter):
            pass

        class Mean(lib.nn.Buffer):
            pass

        class Logged(lib.nn.Parameter):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                cls.last = func.__name__
                return super().__torch_function__(func, types, args, kwargs or {})

        for kind in (Weight, Mean):
            assert type(kind(lib.ones(2)) * 2) is lib.Tensor
        net = lib.nn.Linear(1, 2)
        net.scaled = Weight(lib.ones(2))
        net.result = net.scaled * 2
        assert "result" not in dict(net.named_parameters())
        assert type(lib.add(Logged(lib.ones(2)), 1)) is lib.Tensor
        assert Logged.last == "add"


def test_a_call_of_a_subclass_makes_one(torch):
    for lib in (convcore, torch):

        class Named(lib.Tensor):
            pass

        for made in (Named([1.0, 2.0]), Named(2), Named(lib.ones(2)), Named()):
            assert type(made) is Named
        assert type(Named([1.0]) * 2) is Named


def test_watchers_leave_functions_as_they_were():
    from convcore.nn import functional
    from convcore.overrides import watching

    overrides = convcore.overrides
    overrides.uninstall()
    relu, add = functional.relu, convcore.Tensor.__add__
    seen = []

    def watcher(function, name, args, kwargs):
        seen.append(name)
        return function(*args, **kwargs)

    for own in (relu, functional.relu6, relu):
        functional.relu = own  # as tools do that count calls
        with watching(watcher), watching(watcher):
            functional.relu(convcore.ones(1) + 1)
        assert functional.relu is own and convcore.Tensor.__add__ is add
    assert seen == ["ones", "ones", "add", "add", "relu", "relu"] * 3
    with pytest.raises(ZeroDivisionError), watching(lambda *call: 1 / 0):
        functional.relu(convcore.ones(1))
    assert functional.relu is relu and not hasattr(convcore.Tensor, "__torch_function__")


def test_an_array_in_a_functions_place_is_left_there():
    plain = convcore.nn.functional.celu
    try:
        convcore.nn.functional.celu = before = np.ones(2)
        with watching(lambda function, name, args, kwargs: function(*args, **kwargs)):
            convcore.nn.functional.celu = after = np.zeros(2)
        assert convcore.nn.functional.celu is after and before.sum() == 2
        with watching(lambda function, name, args, kwargs: function(*args, **kwargs)):
            assert convcore.nn.functional.celu is after
    finally:
        convcore.nn.functional.celu = plain


class Twice(overrides.TorchFunctionMode):
    """Counts calls."""

    calls = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        Twice.calls += 1
        return func(*args, **(kwargs or {}))


def test_functions_are_restored_when_the_last_mode_leaves():
    overrides.uninstall()
    before = dict(vars(convcore.nn.functional)), dict(vars(convcore.Tensor))
    with Twice():
        with Twice():
            pass
        wrapped = convcore.relu
        wrapped(convcore.ones(1))
    assert Twice.calls and wrapped is not convcore.relu
    assert (dict(vars(convcore.nn.functional)), dict(vars(convcore.Tensor))) == before
    with pytest.raises(ZeroDivisionError), Twice():
        _ = 1 / 0
    assert dict(vars(convcore.Tensor)) == before[1]


def test_wrappers_stay_before_a_class_has_too_many_versions(monkeypatch):
    overrides.uninstall()
    monkeypatch.setattr(overrides, "_MOST_WRAPS", 2)
    calls = []

    def watcher(function, name, args, kwargs):
        calls.append(name)
        return function(*args, **kwargs)

    for _ in range(2):
        assert not hasattr(convcore.Tensor.add, "__wrapped__")
        with watching(watcher):
            convcore.ones(1).add(1)
    stays = dict(vars(convcore.Tensor))
    assert stays["add"].__wrapped__ and calls.count("add") == 2
    assert convcore.ones(1).add(1).item() == 2 and calls.count("add") == 2
    with watching(watcher):
        convcore.ones(1).add(1)
    assert calls.count("add") == 3 and dict(vars(convcore.Tensor)) == stays
    overrides.uninstall()
    assert not hasattr(convcore.Tensor.add, "__wrapped__")


def test_functions_of_linalg_and_special_are_intercepted():
    seen = []

    class Noting(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    x = convcore.ones(2, 2)
    with Noting():
        convcore.linalg.vector_norm(x)
        convcore.special.expit(x)
    assert seen == ["vector_norm", "expit"]
