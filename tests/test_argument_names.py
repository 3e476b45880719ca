"""What is of a wrong type, or too large a number, is an error that names the argument."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import convcore
from convcore import Tensor, nn
from convcore._errors.calls import names_arguments
from convcore.nn import functional as F

X = convcore.ones(3)
MASK = X > 0
PLACES = convcore.tensor([0])

# For each call the argument that its error names.
CALLS = {
    "addcmul": (lambda: convcore.addcmul(X, 3, X), "'tensor1' (position 2)"),
    "addcmul_": (lambda: X.clone().addcmul_(X, [1]), "'tensor2' (position 3)"),
    "broadcast_tensors": (lambda: convcore.broadcast_tensors(X, [1]), "'tensors' (position 2)"),
    "can_cast": (lambda: convcore.can_cast(convcore.int8, 1), "'to'"),
    "clamp": (lambda: convcore.clamp([1.0], 0), "'input' (position 1)"),
    "conj": (lambda: convcore.conj([1]), "'input' (position 1)"),
    "detach": (lambda: convcore.detach(3), "'self' (position 1)"),
    "diff": (lambda: X.diff(prepend=3), "'prepend'"),
    "gather": (lambda: X.gather(0, [0]), "'index' (position 3)"),
    "index_add": (lambda: X.index_add(0, PLACES, 2), "'source'"),
    "masked_fill_": (lambda: X.clone().masked_fill_(1, 0), "'mask'"),
    "masked_scatter": (lambda: X.masked_scatter(MASK, 1), "'source' (position 3)"),
    "multinomial": (lambda: convcore.multinomial([1.0], 1), "'input'"),
    "pairwise_distance": (lambda: F.pairwise_distance(1.0, 2.0), "'input' (position 1)"),
    "poisson": (lambda: convcore.poisson(None), "'input'"),
    "pow": (lambda: convcore.pow(1, 2), "'input' (position 1)"),
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


# What is of a wrong type, and what its error says.
WRONG = {
    "add": (lambda: convcore.add(X, "2"), "add(): argument 'other' (position 2) cannot be str"),
    "as_strided": (
        lambda: X.as_strided((2,), "1"),
        "as_strided(): argument 'stride' must be tuple of ints, not str",
    ),
    "axes": (lambda: X.sum(object()), "argument 'dim' must be int or tuple of ints, not object"),
    "broadcast_to": (
        lambda: convcore.broadcast_to(X, "3"),
        "broadcast_to(): argument 'size' must be tuple of ints, not str",
    ),
    "cat": (lambda: convcore.cat(3), "'tensors' (position 1) must be tuple of Tensors, not int"),
    "clip_grad_value_": (
        lambda: convcore.nn.utils.clip_grad_value_([X], "1"),
        "clip_grad_value_(): argument 'clip_value' must be Number, not str",
    ),
    "einsum": (lambda: convcore.einsum(3, X), "'equation' (position 1) must be str, not int"),
    "expand": (
        lambda: X.expand(2, "3"),
        "expand(): argument 'size' must be tuple of ints, but found element of type str at pos 1",
    ),
    "fill_": (lambda: X.clone().fill_("2"), "fill_(): argument 'value' must be Number, not str"),
    "init": (
        lambda: convcore.nn.init.kaiming_uniform_([1]),
        "kaiming_uniform_(): argument 'tensor' (position 1) must be Tensor, not list",
    ),
    "keepdim": (lambda: X.sum(0, keepdim="a"), "sum(): argument 'keepdim' must be bool, not str"),
    "lerp": (lambda: X.lerp(X, "0.5"), "lerp(): argument 'weight' must be Number, not str"),
    "masked_fill": (lambda: X.masked_fill(MASK, "2"), "argument 'value' must be Number, not str"),
    "nan_to_num": (lambda: X.nan_to_num("1"), "argument 'nan' must be Number, not str"),
    "narrow": (
        lambda: X.narrow(0, "0", 1),
        "narrow(): argument 'start' (position 3) must be int or Tensor, not str",
    ),
    "norm": (lambda: X.norm([2]), "norm(): argument 'p' must be Number, not list"),
    "permute": (lambda: X.permute(None), "argument 'dims' must be tuple of ints, not NoneType"),
    "quantile": (lambda: X.quantile("0.5"), "quantile(): argument 'q' must be Number, not str"),
    "reshape": (
        lambda: X.reshape([1, "3"]),
        "'shape' must be tuple of ints, but found element of type str at pos 1",
    ),
    "roll": (lambda: X.roll(1.5), "roll(): argument 'shifts' must be tuple of ints, not float"),
    "scatter": (lambda: X.scatter(0, PLACES, "2"), "argument 'value' must be Number, not str"),
    "split": (lambda: X.split("2"), "argument 'split_size_or_sections' must be int, not str"),
    "stack": (lambda: convcore.stack("ab"), "stack(): argument 'tensors' (position 1) must be"),
    "tensor_split": (
        lambda: X.tensor_split({}),
        "argument 'indices_or_sections' must be tuple of ints, not dict",
    ),
    "topk": (lambda: X.topk(None), "topk(): argument 'k' (position 2) must be int, not NoneType"),
    "Conv2d": (
        lambda: convcore.nn.Conv2d("2", 1, 3),
        "Conv2d(): argument 'in_channels' (position 1) must be int, not str",
    ),
    "Conv2d groups": (
        lambda: convcore.nn.Conv2d(1, 1, 3, groups=None),
        "Conv2d(): argument 'groups' must be int, not NoneType",
    ),
    "LayerNorm": (
        lambda: convcore.nn.LayerNorm(None),
        "'normalized_shape' (position 1) must be int or tuple of ints, not NoneType",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_of_a_wrong_type_is_named_and_told_what_is_allowed(name):
    call, said = WRONG[name]
    with pytest.raises(TypeError) as error:
        call()
    assert said in str(error.value)


# What a layer only keeps for its call is refused where the layer is made.
KEPT = {
    "size": (lambda: nn.Upsample("3"), "Upsample(): argument 'size' (position 1) must be int or"),
    "factor": (lambda: nn.PixelShuffle("3"), "PixelShuffle(): argument 'upscale_factor'"),
    "float": (lambda: nn.PixelShuffle(2.0), "'upscale_factor' (position 1) must be int, not float"),
    "class": (lambda: nn.MaxPool2d(int), "MaxPool2d(): argument 'kernel_size' (position 1)"),
    "element": (
        lambda: nn.AvgPool2d(2, stride=(2, "2")),
        "AvgPool2d(): argument 'stride' must be int or tuple of ints or None, but found element "
        "of type str at pos 1",
    ),
    "None": (lambda: nn.MaxPool2d(None), "'kernel_size' (position 1) must be int or tuple of ints"),
    "padding": (lambda: nn.ZeroPad2d("1"), "ZeroPad2d(): argument 'padding' (position 1)"),
    "number": (lambda: nn.BatchNorm2d(4, eps="a"), "BatchNorm2d(): argument 'eps' must be float"),
    "axis": (lambda: nn.Softmax(dim="a"), "Softmax(): argument 'dim' must be int or None, not str"),
    "output": (
        lambda: nn.AdaptiveAvgPool2d((2, "a")),
        "AdaptiveAvgPool2d(): argument 'output_size'",
    ),
    "a value of it": (
        lambda: nn.Conv2d(2.5, 5, 3),
        "Conv2d(): argument 'in_channels' (position 1) must be int, not float",
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_a_layer_cannot_use_is_refused_where_it_is_made(name):
    make, says = KEPT[name]
    with pytest.raises(TypeError) as caught:
        make()
    assert says in str(caught.value)


def test_what_stands_for_numbers_is_taken_by_layers():
    x = convcore.rand(2, 4, 8, 8)
    two = np.int64(2)
    assert nn.MaxPool2d((two, convcore.tensor(2)))(x).shape == (2, 4, 4, 4)
    assert nn.AdaptiveAvgPool2d([None, two])(x).shape == (2, 4, 8, 2)
    assert nn.ZeroPad2d(range(4))(x).shape == nn.ZeroPad2d(np.arange(4))(x).shape == (2, 4, 13, 9)
    assert nn.LeakyReLU(convcore.tensor(0.5))(x).shape == x.shape
    assert nn.InstanceNorm2d(4 / 1, momentum=None)(x).shape == x.shape
    assert nn.ConstantPad1d(1, None)(x).shape == (2, 4, 8, 10)


def test_the_first_argument_that_does_not_fit_its_annotation_is_to_blame():
    @names_arguments
    def summed(input: Tensor, sizes: Sequence[int], start: int | None = 0, other: Any = 1) -> Any:
        return sum(sizes) + (start or 0) + other

    assert summed(X, (1, 2)) == 4
    for args, said in (
        ((X, 3), r"summed\(\): argument 'sizes' \(position 2\) must be tuple of ints, not int"),
        ((X, [1, "2"]), "'sizes' .* but found element of type str at pos 1"),
        ((X, [1], "2"), r"'start' \(position 3\) must be int or None, not str"),
        ((X, [1], 0, "2"), r"'other' \(position 4\) cannot be str: unsupported operand"),
    ):
        with pytest.raises(TypeError, match=said):
            summed(*args)
    with pytest.raises(TypeError, match="argument 'start' must be int or None, not str"):
        summed(X, [1], start="2")


def test_an_error_in_words_of_our_own_stays():
    @names_arguments
    def refusing(input: int) -> None:
        raise ValueError("input must be even")

    with pytest.raises(ValueError, match=r"^input must be even$"):
        refusing("2")


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


NUMPY = {
    "softmax": lambda m, x: m.softmax(x, axis=0),
    "softmax, a method": lambda m, x: x.softmax(axis=0),
    "log_softmax": lambda m, x: x.log_softmax(axis=1),
    "squeeze": lambda m, x: x[:1].squeeze(axis=0),
    "unsqueeze": lambda m, x: m.unsqueeze(x, axis=1),
    "chunk": lambda m, x: x.chunk(2, axis=1)[1],
    "unbind": lambda m, x: m.unbind(x, axis=1)[2],
    "argsort": lambda m, x: m.argsort(x, axis=0),
    "sort": lambda m, x: m.sort(x, axis=0)[0],
    "kthvalue": lambda m, x: x.kthvalue(1, axis=0)[0],
    "topk": lambda m, x: x.topk(1, axis=0)[0],
    "diff": lambda m, x: m.diff(x, axis=0),
    "quantile": lambda m, x: m.quantile(x, 0.5, axis=0, keepdims=True),
    "sort in bfloat16": lambda m, x: m.sort(x.bfloat16(), axis=0)[0].float(),
    "softmax in bfloat16": lambda m, x: m.softmax(x.bfloat16(), axis=0).float().round(),
    "cumsum, into out": lambda m, x: m.cumsum(x, axis=0, out=m.zeros(2, 3)),
    "sort, into out": lambda m, x: m.sort(
        x, axis=0, out=(m.zeros(2, 3), m.zeros(2, 3, dtype=m.int64))
    )[0],
    "index_select": lambda m, x: x.index_select(axis=1, index=m.tensor([2])),
}


@pytest.mark.parametrize("name", NUMPY)
def test_numpys_names_of_arguments_are_taken_as_pytorchs(name, torch):
    values = [[1.0, 5.0, 3.0], [4.0, 2.0, 9.0]]
    ours, theirs = (NUMPY[name](m, m.tensor(values)) for m in (convcore, torch))
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6, atol=1e-6)


def test_a_keyword_in_both_names_is_refused():
    with pytest.raises(TypeError, match="unexpected keyword argument 'axis'"):
        convcore.softmax(X, dim=0, axis=0)
