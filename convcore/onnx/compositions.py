"""Functions without an ONNX operator of their own: exported as several nodes, or as part of one.

Translations as in `translation.py`: each takes the recorder, the result of the call and its
arguments by name, and returns the names of its outputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import convcore
from convcore import nn
from convcore.nn import functional as F
from convcore.onnx.errors import OnnxError
from convcore.onnx.recurrences import LAYERS
from convcore.onnx.translation import Translation, translates
from convcore.onnx.values import array_of

if TYPE_CHECKING:
    from convcore.onnx.recording import Recorder


@translates("glu")
def _glu(r: Recorder, y: Any, *, input: Any, dim: int) -> list[str]:
    half = r.constant([y.shape[dim]] * 2, np.int64)
    value, gate = r.node("Split", [r.name(input), half], count=2, axis=dim % input.ndim)
    return r.node("Mul", [value, *r.node("Sigmoid", [gate])])


@translates("hardshrink")
def _hardshrink(r: Recorder, y: Any, *, input: Any, lambd: float) -> list[str]:
    return r.node("Shrink", [r.name(input)], lambd=float(lambd), bias=0.0)


@translates("softshrink")
def _softshrink(r: Recorder, y: Any, *, input: Any, lambd: float) -> list[str]:
    return r.node("Shrink", [r.name(input)], lambd=float(lambd), bias=float(lambd))


@translates("tanhshrink")
def _tanhshrink(r: Recorder, y: Any, *, input: Any) -> list[str]:
    x = r.name(input)
    return r.node("Sub", [x, *r.node("Tanh", [x])])


@translates("logsigmoid")
def _logsigmoid(r: Recorder, y: Any, *, input: Any) -> list[str]:
    # log(1 / (1 + exp(-x))), without its overflow.
    return r.node("Neg", r.node("Softplus", r.node("Neg", [r.name(input)])))


@translates("rrelu")
def _rrelu(
    r: Recorder, y: Any, *, input: Any, lower: float, upper: float, training: bool, **_: Any
) -> list[str]:
    if training:
        raise OnnxError("rrelu in training mode")
    return r.node("LeakyRelu", [r.name(input)], alpha=(lower + upper) / 2)


@translates("softmin")
def _softmin(
    r: Recorder, y: Any, *, input: Any, dim: Any, dtype: Any = None, **_: Any
) -> list[str]:
    if dim is None or dtype is not None:
        raise OnnxError(f"dim={dim}, dtype={dtype}")
    return r.node("Softmax", r.node("Neg", [r.name(input)]), axis=dim)


@translates("rms_norm")
def _rms_norm(
    r: Recorder, y: Any, *, input: Any, normalized_shape: Any, weight: Any, eps: Any
) -> list[str]:
    x, dtype = r.name(input), array_of(input).dtype
    if dtype not in (np.float32, np.float64):
        raise OnnxError(f"of {dtype}")
    added = r.constant(np.finfo(dtype).eps if eps is None else eps, dtype)
    axes = list(range(-len(normalized_shape), 0))
    squares = r.node("Mul", [x, x])
    if r.opset < 18:
        means = r.node("ReduceMean", squares, axes=axes, keepdims=1)
    else:
        means = r.node("ReduceMean", [*squares, r.constant(axes, np.int64)], keepdims=1)
    root = r.node("Sqrt", r.node("Add", [*means, added]))
    result = r.node("Div", [x, *root])
    return result if weight is None else r.node("Mul", [*result, r.name(weight)])


def _rearranged(
    r: Recorder, y: Any, input: Any, parts: list[int], order: tuple[int, ...]
) -> list[str]:
    """Split the axes after the batch into parts, transpose those, and join them to y's shape."""
    if r.sizes_are_free:
        raise OnnxError("where sizes are free")
    split = r.node("Reshape", [r.name(input), r.constant([0, *parts], np.int64)])
    turned = r.node("Transpose", split, perm=order)
    return r.node("Reshape", [*turned, r.constant([0, *y.shape[1:]], np.int64)])


@translates("channel_shuffle")
def _channel_shuffle(r: Recorder, y: Any, *, input: Any, groups: int) -> list[str]:
    channels, *sizes = input.shape[1:]
    rest = range(3, 3 + len(sizes))
    return _rearranged(r, y, input, [groups, channels // groups, *sizes], (0, 2, 1, *rest))


@translates("pixel_unshuffle")
def _pixel_unshuffle(r: Recorder, y: Any, *, input: Any, downscale_factor: int) -> list[str]:
    # SpaceToDepth has the new channels in another order: pixels first.
    if input.ndim != 4:
        raise OnnxError("without a batch")
    factor, (_, height, width) = downscale_factor, y.shape[1:]
    parts = [input.shape[1], height, factor, width, factor]
    return _rearranged(r, y, input, parts, (0, 1, 3, 5, 2, 4))


def _lp_pool(rank: int) -> Translation:
    """Return the translation of the p-norm of windows over some axes."""

    def lp_pool(
        r: Recorder,
        y: Any,
        *,
        input: Any,
        norm_type: float,
        kernel_size: Any,
        stride: Any,
        ceil_mode: bool,
    ) -> list[str]:
        if norm_type % 2 or ceil_mode or input.ndim != rank + 2:
            # LpPool takes the absolute values, and lp_pool does not.
            raise OnnxError(f"norm_type={norm_type}, ceil_mode={ceil_mode}, {input.ndim} axes")
        sizes, steps = (
            list(each) if isinstance(each, tuple | list) else [each] * rank
            for each in (kernel_size, kernel_size if stride in (None, ()) else stride)
        )
        names = [r.name(input)]
        return r.node("LpPool", names, kernel_shape=sizes, strides=steps, p=int(norm_type))

    return lp_pool


for _rank in (1, 2, 3):
    translates(f"lp_pool{_rank}d")(_lp_pool(_rank))


def _cross_map(r: Recorder, layer: Any, input: Any) -> list[str]:
    half = (layer.size - 1) // 2
    window, by = 2 * half + 1, layer.alpha / layer.size
    # The running sum of Torch 7 never lets go of the first channel.
    kept = (np.arange(input.shape[1]) > half).astype(array_of(input).dtype)
    with r.composing():
        squares = input * input
        lines = F.pad(squares.flatten(2).unsqueeze(1), (0, 0, half, half))
        sums = (F.avg_pool2d(lines, (window, 1), 1) * window).reshape_as(input)
        column = convcore.from_numpy(kept).reshape(-1, *(1,) * (input.ndim - 2))
        scale = (sums + squares[:, :1] * column) * by + layer.k
        return [r.name(input * scale**-layer.beta)]


LAYERS[nn.CrossMapLRN2d.forward] = _cross_map
