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
    for wrong in tensors:
        for value in ([1.0, 2.0], np.ones(2)):
            given = {n: convcore.ones(2) if n in tensors else 1 for n in names}
            given[wrong] = value
            try:
                function(*given.values())
            except Exception as error:
                assert "_array" not in str(error), (wrong, type(value), error)
                assert not isinstance(error, AttributeError), (wrong, type(value), error)
