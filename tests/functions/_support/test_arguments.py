"""Arguments that are refused: the kind of error, the function's name, the argument's, its place."""

from __future__ import annotations

import numpy as np
import pytest

import convcore
from convcore.functions._support import arguments


def test_a_value_that_the_engine_refuses_is_a_runtime_error_without_its_cause():
    def refuse(value):
        raise ValueError(f"{value} is too small")

    with pytest.raises(RuntimeError, match=r"^3 is too small$") as caught:
        arguments.computed(refuse, 3)
    assert caught.value.__cause__ is None and caught.value.__suppress_context__


@pytest.mark.parametrize("kind", [TypeError, MemoryError, KeyError])
def test_other_errors_of_the_engine_come_through(kind):
    def fail():
        raise kind("as it was")

    with pytest.raises(kind, match="as it was"):
        arguments.computed(fail)


def test_infinities_are_computed_without_a_warning():
    assert arguments.computed(np.log, np.zeros(1))[0] == -np.inf


def test_the_first_argument_that_is_no_tensor_is_named_with_its_place():
    x = convcore.ones(1)
    arguments.check_arguments("f", input=x, other=x)
    for given, text in (
        ({"input": 1.0, "other": x}, "'input' (position 1) must be Tensor, not float"),
        ({"input": x, "other": [x]}, "'other' (position 2) must be Tensor, not list"),
        ({"input": None, "other": None}, "'input' (position 1) must be Tensor, not NoneType"),
        ({"input": np.ones(1)}, "'input' (position 1) must be Tensor, not numpy.ndarray"),
        ({"input": np.float32(1)}, "'input' (position 1) must be Tensor, not numpy.float32"),
    ):
        with pytest.raises(TypeError) as caught:
            arguments.check_arguments("f", **given)
        assert str(caught.value).partition("\n")[0] == f"f(): argument {text}"


def test_checks_of_one_tensor_and_of_two_use_the_names_input_and_other():
    x = convcore.ones(1)
    with pytest.raises(TypeError, match=r"f\(\): argument 'input' \(position 1\)"):
        arguments.check_tensor("f", 1)
    with pytest.raises(TypeError, match=r"f\(\): argument 'other' \(position 2\)"):
        arguments.check_tensors("f", x, 1)


def test_an_optional_tensor_may_be_none_and_nothing_else():
    arguments.check_optional("f", weight=None, bias=convcore.ones(1))
    with pytest.raises(TypeError, match=r"f\(\): argument 'bias' must be Tensor, not int"):
        arguments.check_optional("f", weight=None, bias=0)


@pytest.mark.parametrize("value", [2, 2.5, True, np.float32(0.5), np.int64(7)])
def test_numbers_are_taken_as_they_are(value):
    assert arguments.number("f", "p", value) == value


def test_a_tensor_without_axes_is_a_number_and_one_with_axes_is_not():
    assert arguments.number("f", "p", convcore.tensor(0.5)) == 0.5
    for value in (convcore.ones(1), 1j, "1", None):
        with pytest.raises(TypeError, match=r"f\(\): argument 'p' must be Number, not "):
            arguments.number("f", "p", value)


def test_a_gradient_that_there_is_none_of_is_refused_only_where_it_is_recorded():
    weight = convcore.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"'f' is not differentiable.* argument 'weight'"):
        arguments.refuse_gradients("f", weight=weight)
    with convcore.no_grad():
        arguments.refuse_gradients("f", weight=weight)
    arguments.refuse_gradients("f", weight=weight.detach(), bias=None)


@pytest.mark.parametrize(
    ("dtype", "name"), [("bool", "Bool"), ("int64", "Long"), ("uint8", "Byte"), ("int32", "Int")]
)
def test_a_dtype_without_a_kernel_is_named_as_pytorch_names_it(dtype, name):
    x = convcore.ones(1, dtype=getattr(convcore, dtype))
    with pytest.raises(NotImplementedError, match=f"\"kernel\" not implemented for '{name}'"):
        arguments.check_kind("kernel", x, "fc")
    arguments.check_kind("kernel", x.double(), "fc")
