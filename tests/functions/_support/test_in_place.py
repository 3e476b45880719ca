"""In-place forms of functions: their names and help, memory, versions, gradients, errors."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import convcore
from convcore import Tensor
from convcore.functions import _bind
from convcore.functions._support.in_place import in_place, in_place_methods


def scaled(input: Tensor, factor: float, more: float = 0) -> Tensor:
    """Return the tensor times a number, and something more."""
    return input * factor + more


# The methods of Tensor that it has made, which all run the same code; not read from Tensor, where
# they are wrapped once another test file has defined a subclass.
MADE = {
    name: method
    for family in _bind.FAMILIES
    for name, method in _bind.methods_of(family).items()
    if getattr(method, "__code__", None) is in_place(scaled).__code__
}


def test_there_are_in_place_forms_of_many_functions():
    assert {"exp_", "clamp_", "eq_", "tril_", "__iand__"} <= MADE.keys()


@pytest.mark.parametrize("name", [name for name in MADE if not name.startswith("__")])
def test_name_help_and_arguments_are_those_of_the_function(name):
    method = MADE[name]
    function = method.__wrapped__
    assert method.__name__ == method.__qualname__ == f"{function.__name__}_"
    assert f"in place, by `{function.__name__}`" in method.__doc__
    assert inspect.signature(method) == inspect.signature(function)


def test_methods_are_named_after_their_functions():
    assert in_place_methods(scaled, convcore.exp).keys() == {"scaled_", "exp_"}


def test_memory_stays_and_every_change_counts_once():
    x = convcore.arange(6.0).reshape(2, 3)
    row, address = x[1], x.data_ptr()
    method = in_place(scaled)
    assert method(x, 2) is x
    assert method(x, factor=1, more=1) is x
    assert x.data_ptr() == address
    assert row.tolist() == [7, 9, 11]
    assert x._version == row._version == 2


def test_gradient_passes_through_the_function():
    leaf = convcore.tensor([1.0, 2.0], requires_grad=True)
    x = leaf * 1
    in_place(scaled)(x, 3)
    (x * x).sum().backward()
    assert leaf.grad.tolist() == [18, 36]


def test_a_leaf_that_requires_grad_is_not_changed():
    leaf = convcore.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        in_place(scaled)(leaf, 2)
    assert leaf.tolist() == [1, 1]


def test_a_result_of_another_shape_or_kind_of_dtype_is_refused():
    x = convcore.ones(1)
    with pytest.raises(RuntimeError, match="shape"):
        in_place(scaled)(x, convcore.ones(3))
    with pytest.raises(RuntimeError, match="can't be cast"):
        in_place(scaled)(convcore.tensor([1]), 0.5)
    assert x.tolist() == [1] and x._version == 0


@pytest.mark.parametrize("value", [np.ones(1), [1.0], 1.0])
def test_what_is_no_tensor_is_refused_by_the_name_of_the_method(value):
    with pytest.raises(TypeError, match=r"scaled_\(\): argument 'input' \(position 1\)"):
        in_place(scaled)(value, 2)
