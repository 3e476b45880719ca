"""What is no tensor is refused by the name of the function and of the argument."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import convcore
from convcore import functions
from convcore.nn import functional

# Takes a number in the place of tensors, in its older order of arguments.
OLDER = {"addcmul"}
# Functions that compute with an array in the place of their first tensor, as an operator does.
ARRAYS_TAKEN = {
    *("add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "fmod"),
    *("eq", "ne", "not_equal", "ge", "greater_equal", "gt", "greater"),
    *("le", "less_equal", "lt", "less", "square", "pairwise_distance"),
}
# Values of the other arguments, for functions that look at these first.
OTHERS = {
    "dim": 0,
    "index": convcore.tensor([0, 1]),
    "indices": convcore.tensor([0, 1]),
    "mask": convcore.tensor([True, False]),
    "size": (2,),
    **dict.fromkeys(("query", "key", "value"), convcore.ones(2, 1)),
}
# An option without which nothing is computed.
OPTIONS = {"clamp": {"min": 0.0}, "clip": {"min": 0.0}}


def tensor_arguments(function):
    """Return the names of the required arguments, and those of them that are tensors."""
    required = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    names = [parameter.name for parameter in required]
    return names, [p.name for p in required if str(p.annotation) == "Tensor"]


def public():
    """Return (name, function) of everything that takes a tensor."""
    rooms = (functions, functional)
    found = {name: getattr(room, name) for room in rooms for name in room.__all__}
    return sorted(
        (name, function)
        for name, function in found.items()
        if callable(function) and name not in OLDER and tensor_arguments(function)[1]
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name, function", public(), ids=[name for name, _ in public()])
def test_what_is_no_tensor_is_refused_by_name(name, function):
    names, tensors = tensor_arguments(function)
    options = OPTIONS.get(name, {})
    for wrong in tensors:
        for value in ([1.0, 2.0], np.ones(2)):
            given = {n: OTHERS.get(n, convcore.ones(2) if n in tensors else 1) for n in names}
            given[wrong] = value
            if name in ARRAYS_TAKEN and wrong in ("input", "x1", "x2") and type(value) is not list:
                function(*given.values(), **options)
                continue
            with pytest.raises(TypeError, match=r"argument '\w+'.* must be ") as caught:
                function(*given.values(), **options)
            assert "_array" not in str(caught.value)
