"""The calls by which sweep.py times the constants of layers, by the module that has them."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import convcore
from convcore import Tensor
from convcore.nn import functional as F

Shape = tuple[int, ...]


class Layer(NamedTuple):
    """Functions of one tensor, the shapes that they are called with, and whether back as well."""

    functions: Mapping[str, Callable[[Tensor], Tensor]]
    shapes: tuple[Shape, ...]
    backward: bool = True
    dtype: str = "float32"


def calls_of(module: str) -> Iterator[tuple[str, Callable[[], Callable[[], Any]]]]:
    """Yield the title of each call of a module's layers, and what prepares it."""
    for layer in LAYERS[module]:
        for (name, function), shape in itertools.product(layer.functions.items(), layer.shapes):
            for channels_last in (False, True) if len(shape) == 4 else (False,):
                last = ", channels_last" if channels_last else ""
                title = f"{name} of {'x'.join(map(str, shape))} {layer.dtype}{last}"
                make = partial(_prepared, layer, function, shape, channels_last)
                yield title, make
                if layer.backward:
                    yield f"{title}, backward", partial(make, True)


def _prepared(
    layer: Layer,
    function: Callable[[Tensor], Tensor],
    shape: Shape,
    channels_last: bool,
    backward: bool = False,
) -> Callable[[], Any]:
    x = convcore.tensor(np.random.default_rng(0).standard_normal(shape).astype(layer.dtype))
    if channels_last:
        x = x.contiguous(memory_format=convcore.channels_last)
    if not backward:
        return partial(function, x)
    y = function(x.requires_grad_())
    grad = convcore.ones_like(y)
    return lambda: convcore.autograd.grad(y, x, grad, retain_graph=True)


def _squares(*elements: int, channels: int = 16) -> tuple[Shape, ...]:
    """Return (1, C, H, W) of about so many elements each."""
    sides = (round(math.sqrt(count / channels)) for count in elements)
    return tuple((1, channels, side, side) for side in sides)


def _lengths(*exponents: int) -> tuple[Shape, ...]:
    return tuple((1 << exponent,) for exponent in exponents)


def _batch_norm(x: Tensor) -> Tensor:
    return F.batch_norm(x, None, None, training=True)


def _channel_bias(x: Tensor) -> Tensor:
    return x + _BIAS


def _conv(x: Tensor) -> Tensor:
    return F.conv2d(x, _WEIGHT, padding=1)


def _linear(n: int, x: Tensor) -> Tensor:
    return F.linear(x, _ones(n, x.shape[-1]))


@functools.cache
def _ones(*shape: int) -> Tensor:
    return convcore.ones(shape)


_BIAS = convcore.ones((1, 16, 1, 1))
_WEIGHT = convcore.ones((16, 16, 3, 3))
_MAPS = ((1, 64, 14, 14), (8, 64, 56, 56), (32, 16, 32, 32), (8, 256, 14, 14), (2, 512, 7, 7))
_ROWS = ((512, 64), (392, 768), (8, 128, 256), (4, 4096), (2048, 512))
_SMALL = _squares(1 << 13, 1 << 15, 1 << 16, 1 << 17, 1 << 18)

LAYERS = {
    "norm": (
        Layer({"batch_norm": _batch_norm, "group_norm": lambda x: F.group_norm(x, 8)}, _MAPS),
    ),
    "layer_norm": (Layer({"layer_norm": lambda x: F.layer_norm(x, x.shape[-1:])}, _ROWS),),
    "reduce": (
        Layer(
            {"sum over N, H, W": lambda x: x.sum((0, 2, 3)), "sum": Tensor.sum},
            _squares(256, 512, 1024, 2048, 4096, 16384),
            backward=False,
        ),
    ),
    "strided_copy": (
        Layer(
            {
                "pad by 1": lambda x: F.pad(x, (1, 1, 1, 1)),
                "cat of two, axis 1": lambda x: convcore.cat((x, x), 1),
            },
            _squares(1 << 12, 1 << 14, 1 << 15, 1 << 16, 1 << 17, 1 << 18),
            backward=False,
        ),
    ),
    "elementwise": (
        Layer(
            {"tanh": Tensor.tanh, "smooth_l1_loss": lambda x: F.smooth_l1_loss(x, x)},
            _lengths(2, 3, 4, 5, 6, 8),
            backward=False,
        ),
        Layer({"relu": F.relu}, _lengths(8, 9, 10, 11, 12, 14)),
        Layer(
            {"sum": lambda x: x + x, "product": lambda x: x * x},
            _lengths(12, 14, 15, 16, 17, 18, 20),
            backward=False,
        ),
        Layer(
            {"sum with a number a channel": _channel_bias},
            _squares(1 << 9, 1 << 10, 1 << 11, 1 << 12, 1 << 14),
            backward=False,
        ),
        Layer(
            {"relu": F.relu, "hardswish": F.hardswish, "silu": F.silu},
            _lengths(10, 14),
            dtype="float16",
        ),
    ),
    "matmul_bfloat16": (
        Layer(
            {f"linear to {n}": partial(_linear, n) for n in (16, 24, 48, 64, 512)},
            ((16, 512), (64, 512), (512, 16), (512, 64), (512, 512)),
        ),
    ),
    "max_pooling": (
        Layer(
            {
                "max_pool2d 2x2": lambda x: F.max_pool2d(x, 2),
                "max_pool2d 3x3, stride 2": lambda x: F.max_pool2d(x, 3, 2, 1),
            },
            _SMALL,
        ),
    ),
    "softmax": (Layer({"softmax": lambda x: F.softmax(x, 1)}, ((64, 10), (64, 100), (64, 1000))),),
    "threads": (
        Layer({"relu": F.relu, "silu": F.silu, "batch_norm": _batch_norm, "conv2d": _conv}, _SMALL),
    ),
}  # fmt: skip
