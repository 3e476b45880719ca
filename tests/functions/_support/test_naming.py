"""What is no tensor, or too large a number, is an error that names the argument."""

from __future__ import annotations

import numpy as np
import pytest

import convcore
from convcore.functions._support.naming import names_arguments
from convcore.nn import functional as F

X = convcore.ones(3)
MASK = X > 0
PLACES = convcore.tensor([0])

# For each call the argument that its error names.
CALLS = {
    "addcmul": (lambda: convcore.addcmul(X, 3, X), "'tensor1' (position 2)"),
    "addcmul_": (lambda: X.clone().addcmul_(X, [1]), "'tensor2' (position 3)"),
    "binomial": (lambda: convcore.binomial(X, 0.5), "'prob'"),
    "broadcast_tensors": (lambda: convcore.broadcast_tensors(X, [1]), "'tensors' (position 2)"),
    "can_cast": (lambda: convcore.can_cast(convcore.int8, 1), "'to'"),
    "chain_matmul": (lambda: convcore.chain_matmul(X, 1), "tensors[1]"),
    "clamp": (lambda: convcore.clamp([1.0], 0), "'input' (position 1)"),
    "conj": (lambda: convcore.conj([1]), "'input' (position 1)"),
    "detach": (lambda: convcore.detach(3), "'self' (position 1)"),
    "diff": (lambda: X.diff(prepend=3), "'prepend'"),
    "div": (lambda: convcore.div(1, 2), "'input' (position 1)"),
    "gather": (lambda: X.gather(0, [0]), "'index' (position 3)"),
    "index_add": (lambda: X.index_add(0, PLACES, 2), "'source'"),
    "index_copy": (lambda: X.index_copy(0, 3, X), "'index' (position 3)"),
    "masked_fill_": (lambda: X.clone().masked_fill_(1, 0), "'mask'"),
    "masked_scatter": (lambda: X.masked_scatter(MASK, 1), "'source' (position 3)"),
    "multi_margin_loss": (
        lambda: F.multi_margin_loss(X, convcore.tensor(0), weight=[1]),
        "'weight' (position 3)",
    ),
    "multinomial": (lambda: convcore.multinomial([1.0], 1), "'input'"),
    "pairwise_distance": (lambda: F.pairwise_distance(1.0, 2.0), "'input' (position 1)"),
    "poisson": (lambda: convcore.poisson(None), "'input'"),
    "reshape_as": (lambda: X.reshape_as(3), "'other' (position 2)"),
    "scatter": (lambda: X.scatter(0, [0], 1.0), "'index' (position 3)"),
    "searchsorted": (lambda: convcore.searchsorted([1, 2], X), "'input' (position 1)"),
    "square": (lambda: convcore.square(3), "'input' (position 1)"),
    "to": (lambda: X.to(other=3), "'other'"),
    "trapezoid": (lambda: convcore.trapezoid([1.0]), "'input' (position 1)"),
    "type_as": (lambda: X.type_as(convcore.int8), "'other' (position 2)"),
}


@pytest.mark.parametrize("name", CALLS)
def test_what_is_no_tensor_is_named(name):
    call, argument = CALLS[name]
    with pytest.raises(TypeError) as error:
        call()
    assert argument in str(error.value)
    assert "must be" in str(error.value)


def test_numbers_beyond_64_bits_are_named():
    with pytest.raises(RuntimeError, match="overflow"):
        convcore.zeros(2, dtype=convcore.int64).add_(2**70)
    with pytest.raises(RuntimeError, match="overflow"):
        convcore.zeros(2, dtype=convcore.int64).mul(-(2**64))
    with pytest.raises(RuntimeError, match="too large"):
        X.sum(0, keepdim=2**70)
    with pytest.raises(RuntimeError, match="'decimals'"):
        X.round(decimals=2**40)


def test_arrays_of_dtypes_that_no_tensor_has_are_refused_as_operands():
    for array in (np.array([None, 1]), np.array(["a"]), np.ones(2, ">f4")):
        with pytest.raises(TypeError, match="only supported types"):
            convcore.ones(2) + array


def test_an_error_inside_that_no_argument_is_to_blame_for_stays():
    @names_arguments
    def broken(input):
        return object().missing

    with pytest.raises(AttributeError, match="missing"):
        broken(X)


@pytest.mark.parametrize("name", ["clone", "float", "double", "half", "cpu", "bool"])
def test_no_memory_format_is_the_tensors_own(name):
    x = convcore.ones(2, 3, 4, 4).to(memory_format=convcore.channels_last)
    out = getattr(x, name)(memory_format=None)
    assert out.is_contiguous(memory_format=convcore.channels_last)
    with pytest.raises(TypeError, match="'memory_format' must be"):
        getattr(x, name)(memory_format=1)


def test_new_tensors_take_no_memory_format_for_the_default():
    x = convcore.ones(2, 3, 4, 4).to(memory_format=convcore.channels_last)
    for function in (convcore.ones_like, convcore.zeros_like, convcore.randn_like):
        out = function(x, memory_format=None)
        assert out.is_contiguous(memory_format=convcore.channels_last)
        with pytest.raises(TypeError, match="'memory_format'"):
            function(x, memory_format=[1])
    assert convcore.empty(2, memory_format=None).is_contiguous()
    with pytest.raises(TypeError, match="'memory_format'"):
        x.contiguous(memory_format=None)
