"""Functions of three tensors, beside PyTorch's: values, gradients, in place."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import same_error
from call_tests import (
    in_place_agrees,
    in_place_keeps_memory,
    pairs_agree,
    pairs_have_gradients,
    pairs_keep_channels_last,
    special_pairs_agree,
)

import convcore

# (name, call, lowest and highest element, whether PyTorch has it for complex numbers)
CALLS = [
    ("lerp", lambda m, x, y: m.lerp(x, y, 0.3), -3, 3, True),
    ("lerp far", lambda m, x, y: m.lerp(x, y, 0.8), -3, 3, True),
    ("lerp tensor", lambda m, x, y: m.lerp(x, y, abs(x)), 0.3, 0.9, False),
    ("addcmul", lambda m, x, y: m.addcmul(x, y, x, value=0.5), -3, 3, True),
    ("addcdiv", lambda m, x, y: m.addcdiv(x, x, y, value=0.5), 0.3, 3, True),
]
test_agrees_with_pytorch = pairs_agree(CALLS)
test_gradients_are_those_of_finite_differences = pairs_have_gradients(CALLS)
test_results_keep_channels_last = pairs_keep_channels_last(CALLS)


def test_values_are_those_of_numpy(rng):
    x, a, b = (rng.uniform(0.3, 3, (2, 3)) for _ in range(3))
    tensors = [convcore.from_numpy(each) for each in (x, a, b)]
    expected = {"lerp": x + b * (a - x), "addcmul": x + a * b, "addcdiv": x + a / b}
    for name, value in expected.items():
        np.testing.assert_allclose(getattr(convcore, name)(*tensors).numpy(), value, rtol=1e-12)


test_special_values_agree_with_pytorch = special_pairs_agree(
    {"lerp": lambda m, x, y: m.lerp(x, y, 1)}
)


IN_PLACE = {
    "addcmul_": lambda m, x: x.addcmul_(x * 2, x * 3),
    "addcdiv_": lambda m, x: x.addcdiv_(x * 2, x * 3, value=3),
    "lerp_": lambda m, x: x.lerp_(x * 3, 0.3),
}
test_in_place_agrees_with_pytorch = in_place_agrees(IN_PLACE)
test_in_place_without_graph_keeps_the_memory = in_place_keeps_memory(IN_PLACE)


def test_errors_are_pytorchs(torch):
    same_error(torch, lambda m: m.lerp(m.ones(2), m.ones(2).double(), 0.5))


@pytest.mark.parametrize("value", [2.9, -2.9, True])
def test_addcmul_of_ints_cuts_its_value_off(lib, value):
    x = lib.tensor([1, 2, 3], dtype=lib.int32)
    made = lib.addcmul(x, x, x, value=value)
    assert made.dtype is lib.int32
    assert made.tolist() == [n + int(value) * n * n for n in (1, 2, 3)]
    assert x.clone().addcmul_(x, x, value=value).tolist() == made.tolist()


@pytest.mark.parametrize("name", ["addcmul", "addcdiv"])
def test_older_order_of_arguments(name):
    x, a, b = convcore.tensor([1.0]), convcore.tensor([6.0]), convcore.tensor([2.0])
    expected = getattr(convcore, name)(x, a, b, value=3).item()
    assert expected == {"addcmul": 37.0, "addcdiv": 10.0}[name]
    with pytest.warns(UserWarning, match=f"This overload of {name} is deprecated"):
        assert getattr(convcore, name)(x, 3, a, b).item() == expected
    with pytest.warns(UserWarning, match=f"This overload of {name} is deprecated"):
        assert getattr(x, f"{name}_")(3, a, b) is x and x.item() == expected


@pytest.mark.parametrize("weight", [0, 1, 3])
def test_lerp_by_an_unsigned_weight_does_not_wrap_around(torch, weight):
    start, end = (convcore.tensor([x, 1.5], requires_grad=True) for x in (10.0, 5.0))
    value = convcore.lerp(start, end, convcore.tensor(weight, dtype=convcore.uint8))
    theirs = torch.tensor(weight, dtype=torch.uint8)
    expected = torch.lerp(torch.tensor([10.0, 1.5]), torch.tensor([5.0, 1.5]), theirs)
    assert value.tolist() == expected.tolist()
    grads = convcore.autograd.grad(value.sum(), (start, end))
    # PyTorch's first one is 1 - weight in uint8: 254 where the weight is 3.
    assert [one.tolist() for one in grads] == [[1 - weight] * 2, [weight] * 2]


@pytest.mark.parametrize("dtype", ["float16", "float32", "bfloat16"])
@pytest.mark.parametrize("weight", ["float16", "float32", "float64"])
@pytest.mark.parametrize("axes", [(), (2,)])
def test_lerp_promotes_by_a_weight_without_axes_alone(torch, dtype, weight, axes):
    def call(m, weight_axes):
        x, w = (m.ones(axes, dtype=getattr(m, dtype)), m.ones((), dtype=getattr(m, weight)))
        return m.lerp(x, x, w.expand(weight_axes))

    assert str(call(convcore, ()).dtype) == str(call(torch, ()).dtype)
    if weight != dtype:
        for lib in (convcore, torch):
            with pytest.raises(RuntimeError, match="for `weight` but got dtype"):
                call(lib, (2,))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_products_that_overflow_before_they_are_scaled_are_right(torch, dtype):
    for lib in (convcore, torch):
        big = 300.0 if dtype == "float16" else 1e20
        x, a, b = (lib.tensor([n], dtype=getattr(lib, dtype)) for n in (1.0, big, big))
        a.requires_grad_()
        out = lib.addcmul(x, a, b, value=1 / big)
        out.backward(lib.tensor([big / 2], dtype=a.dtype))
        assert out.item() == pytest.approx(big + 1, rel=1e-3)
        assert a.grad.item() == pytest.approx(big / 2, rel=1e-3)
