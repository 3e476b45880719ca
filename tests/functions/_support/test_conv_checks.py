"""Convolutions that are refused: PyTorch's kinds of errors, and its words."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import same_error
from derivatives import leaf

import convcore


def image(m, *shape, dtype="float32"):
    return m.zeros(*shape, dtype=getattr(m, dtype))


REFUSED = {
    "channels": lambda m: m.conv2d(image(m, 1, 2, 4, 4), image(m, 1, 3, 2, 2)),
    "channels of groups": lambda m: m.conv2d(image(m, 1, 2, 4, 4), image(m, 4, 3, 2, 2), groups=2),
    "axes of input": lambda m: m.conv2d(image(m, 4, 4), image(m, 3, 2, 2, 2)),
    "too many axes of input": lambda m: m.conv2d(image(m, 1, 1, 2, 4, 4), image(m, 3, 2, 2, 2)),
    "axes of a vector": lambda m: m.conv1d(image(m, 4), image(m, 3, 2, 2)),
    "axes of a volume": lambda m: m.conv3d(image(m, 4, 4), image(m, 3, 2, 2, 2, 2)),
    "axes of weight": lambda m: m.conv2d(image(m, 1, 2, 4, 4), image(m, 3, 2, 2)),
    "too many axes of weight": lambda m: m.conv2d(image(m, 1, 2, 4, 4), image(m, 3, 2, 2, 2, 2)),
    "axes of a vector's weight": lambda m: m.conv1d(image(m, 1, 2, 4), image(m, 3, 2, 2, 2)),
    "axes of a vector's weight, no batch": lambda m: m.conv1d(image(m, 2, 4), image(m, 3, 2, 2, 2)),
    "axes of a transposed weight": lambda m: m.conv_transpose1d(
        image(m, 1, 2, 4), image(m, 2, 3, 2, 2)
    ),
    "weight a vector": lambda m: m.conv2d(image(m, 1, 2, 4, 4), image(m, 3)),
    "weight a matrix": lambda m: m.conv2d(image(m, 1, 2, 4, 4), image(m, 3, 2)),
    "bias in double": lambda m: m.conv2d(
        image(m, 1, 2, 4, 4), image(m, 3, 2, 2, 2), image(m, 3, dtype="float64")
    ),
    "all but bias in double": lambda m: m.conv2d(
        image(m, 1, 2, 4, 4, dtype="float64"), image(m, 3, 2, 2, 2, dtype="float64"), image(m, 3)
    ),
    "bias real": lambda m: m.conv2d(
        image(m, 1, 2, 4, 4, dtype="complex64"), image(m, 3, 2, 2, 2), image(m, 3)
    ),
    "weight in double": lambda m: m.conv2d(
        image(m, 1, 2, 4, 4), image(m, 3, 2, 2, 2, dtype="float64")
    ),
    "input of integers": lambda m: m.conv2d(
        image(m, 1, 2, 4, 4, dtype="int64"), image(m, 3, 2, 2, 2)
    ),
    "size of bias": lambda m: m.conv2d(image(m, 1, 2, 4, 4), image(m, 3, 2, 2, 2), image(m, 2)),
    "axes of bias": lambda m: m.conv2d(image(m, 1, 2, 4, 4), image(m, 3, 2, 2, 2), image(m, 3, 1)),
    "kernel": lambda m: m.conv2d(image(m, 1, 2, 4, 4), image(m, 3, 2, 5, 5)),
    "dilated kernel": lambda m: m.conv2d(image(m, 1, 2, 4, 4), image(m, 3, 2, 2, 2), dilation=4),
    "kernel and padding": lambda m: m.conv2d(image(m, 1, 2, 4, 4), image(m, 3, 2, 9, 5), padding=1),
    "kernel and no images": lambda m: m.conv2d(image(m, 0, 2, 1, 4), image(m, 3, 2, 2, 2)),
    "stride": lambda m: m.conv2d(image(m, 1, 2, 4, 4), image(m, 3, 2, 2, 2), stride=0),
    "padding": lambda m: m.conv2d(image(m, 1, 2, 4, 4), image(m, 3, 2, 2, 2), padding=-1),
    "dilation": lambda m: m.conv2d(image(m, 1, 2, 4, 4), image(m, 3, 2, 2, 2), dilation=0),
    "groups": lambda m: m.conv2d(image(m, 1, 4, 4, 4), image(m, 3, 1, 2, 2), groups=4),
    "three strides": lambda m: m.conv2d(
        image(m, 1, 2, 4, 4), image(m, 3, 2, 2, 2), stride=(1,) * 3
    ),
    "three pads": lambda m: m.conv2d(image(m, 1, 2, 4, 4), image(m, 3, 2, 2, 2), padding=(1,) * 3),
    "four pads": lambda m: m.conv2d(image(m, 1, 2, 4, 4), image(m, 3, 2, 2, 2), padding=(1,) * 4),
    "padding string": lambda m: m.conv2d(
        image(m, 1, 2, 4, 4), image(m, 3, 2, 2, 2), padding="valid2"
    ),
    "transposed channels": lambda m: m.conv_transpose2d(image(m, 1, 2, 4, 4), image(m, 3, 1, 2, 2)),
    "transposed bias": lambda m: m.conv_transpose2d(
        image(m, 1, 2, 4, 4), image(m, 2, 3, 2, 2), image(m, 2)
    ),
    "transposed axes": lambda m: m.conv_transpose2d(image(m, 4, 4), image(m, 2, 3, 2, 2)),
    "transposed axes of weight": lambda m: m.conv_transpose2d(
        image(m, 1, 2, 4, 4), image(m, 2, 3, 2)
    ),
    "output_padding": lambda m: m.conv_transpose2d(
        image(m, 1, 2, 4, 4), image(m, 2, 3, 2, 2), output_padding=1
    ),
    "output_padding of one axis": lambda m: m.conv_transpose2d(
        image(m, 1, 2, 4, 4), image(m, 2, 3, 2, 2), output_padding=(0, 1), stride=(2, 1)
    ),
    "output_padding of a volume": lambda m: m.conv_transpose3d(
        image(m, 1, 1, 2, 4, 4), image(m, 1, 2, 2, 2, 2), output_padding=1
    ),
    "output_paddings": lambda m: m.conv_transpose2d(
        image(m, 1, 2, 4, 4), image(m, 2, 3, 2, 2), output_padding=(1, 1, 1)
    ),
    "negative output_padding": lambda m: m.conv_transpose2d(
        image(m, 1, 2, 4, 4), image(m, 2, 3, 2, 2), output_padding=-1
    ),
    "transposed stride": lambda m: m.conv_transpose2d(
        image(m, 1, 2, 4, 4), image(m, 2, 3, 2, 2), stride=0
    ),
    "transposed padding": lambda m: m.conv_transpose2d(
        image(m, 1, 2, 4, 4), image(m, 2, 3, 2, 2), padding=-1
    ),
    "small output": lambda m: m.conv_transpose2d(
        image(m, 1, 2, 4, 4), image(m, 2, 3, 2, 2), padding=5
    ),
    "transposed dtype": lambda m: m.conv_transpose2d(
        image(m, 1, 2, 4, 4), image(m, 2, 3, 2, 2, dtype="float64")
    ),
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED.keys())
def test_errors_are_pytorchs(call, torch):
    same_error(torch, call)


@pytest.mark.parametrize("name", ["conv1d", "conv2d", "conv3d", "conv_transpose2d"])
def test_bool_tensors_are_not_implemented(name, torch):
    for m in (torch, convcore):
        x, w = (m.ones(2, 2, *(3,) * int(name[-2]), dtype=m.bool) for _ in range(2))
        with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
            getattr(m, name)(x, w)


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("non-positive groups is not supported", {"groups": 0}),
        ("padding='same' is not supported for strided", {"padding": "same", "stride": 2}),
        ("expected weight to be divisible by 2 at dimension 0", {"groups": 2}),
    ],
)
def test_errors_begin_or_end_as_pytorchs(text, steps, torch):
    for m in (torch, convcore):
        with pytest.raises(RuntimeError, match=text):
            m.conv2d(m.zeros(1, 2, 4, 4), m.zeros(3, 2, 2, 2), **steps)


@pytest.mark.parametrize(
    "call",
    [
        lambda m, x, w: m.conv2d(3, w),
        lambda m, x, w: m.conv2d(x, None),
        lambda m, x, w: m.conv2d(x, w.numpy()),
        lambda m, x, w: m.conv2d(x, w, 1.0),
        lambda m, x, w: m.conv2d(x, w, stride=1.5),
        lambda m, x, w: m.conv2d(x, w, stride="a"),
        lambda m, x, w: m.conv2d(x, w, stride=None),
        lambda m, x, w: m.conv2d(x, w, padding=1.5),
        lambda m, x, w: m.conv2d(x, w, dilation=(1, 1.5)),
        lambda m, x, w: m.conv2d(x, w, groups=1.5),
        lambda m, x, w: m.conv_transpose2d(x, w, output_padding=0.5),
    ],
)
def test_arguments_of_another_type_are_type_errors(call, torch):
    for m in (torch, convcore):
        with pytest.raises(TypeError):
            call(m, m.zeros(1, 2, 4, 4), m.zeros(2, 2, 2, 2))


def test_error_of_a_users_hook_comes_through_unchanged():
    def pack(tensor):
        raise ValueError("the user's own")

    x, w = leaf(np.ones((1, 1, 3, 3))), leaf(np.ones((1, 1, 2, 2)))
    hooks = convcore.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor)
    for function in (convcore.conv2d, convcore.conv_transpose2d):
        with hooks, pytest.raises(ValueError, match="the user's own"):
            function(x, w)
