"""Calls of convcore's functions as ONNX nodes: a function for each, by the name of what is called.

A translation takes the recorder, the result of the call and its arguments by name; it adds nodes
and returns the names of the outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper

import convcore
from convcore import Tensor, arange, float32, int64
from convcore.nn.functional import interpolate
from convcore.onnx.errors import OnnxError
from convcore.onnx.values import array_of

if TYPE_CHECKING:
    from convcore.onnx.recording import Recorder

Translation = Callable[..., list[str]]
TRANSLATIONS: dict[str, Translation] = {}


def translates(*names: str) -> Callable[[Translation], Translation]:
    """Enter a translation under the names of functions."""

    def enter(function: Translation) -> Translation:
        TRANSLATIONS.update(dict.fromkeys(names, function))
        return function

    return enter


def composes(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function under the names of functions: what it calls is recorded in their place."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        def translation(r: Recorder, y: Any, /, **arguments: Any) -> list[str]:
            with r.composing():
                result = function(**arguments)
                results = result if isinstance(result, tuple | list) else [result]
                return [r.name(each) for each in results if each is not None]

        translates(*names)(translation)
        return function

    return enter


def as_list(value: Any, rank: int) -> list[int]:
    """Return a number for each axis: those given, or the one given as often as needed."""
    return [int(v) for v in value] if isinstance(value, tuple | list) else [int(value)] * rank


def as_dtype(r: Recorder, value: Tensor, dtype: Any) -> str:
    """Return the name of a tensor, cast if it has another dtype."""
    name = r.name(value)
    if value.dtype == dtype:
        return name
    code = helper.np_dtype_to_tensor_dtype(array_of(convcore.empty(0, dtype=dtype)).dtype)
    return r.node("Cast", [name], to=code)[0]


def operands(r: Recorder, y: Tensor, a: Any, b: Any) -> list[str]:
    """Return the names of two operands, tensors or numbers, in the dtype of the result."""
    return [
        as_dtype(r, each, y.dtype) if isinstance(each, Tensor) else r.number(each, y)
        for each in (a, b)
    ]


def common(r: Recorder, a: Any, b: Any) -> list[str]:
    """Return the names of two operands in the dtype that both are compared in."""
    return operands(r, convcore.empty(0, dtype=convcore.result_type(a, b)), a, b)


def ints(r: Recorder, values: Iterable[int]) -> str:
    """Return the name of a constant of integers: sizes, axes, places."""
    return r.constant(list(values), np.int64)


# --- layers with weights -------------------------------------------------------------------------


def _pads(input: Tensor, weight: Tensor, stride: Any, padding: Any, dilation: Any) -> list[int]:
    rank = weight.ndim - 2
    if padding == "valid":
        return [0] * (2 * rank)
    if padding == "same":
        total = [
            d * (k - 1) for d, k in zip(as_list(dilation, rank), weight.shape[2:], strict=True)
        ]
        return [t // 2 for t in total] + [t - t // 2 for t in total]
    return as_list(padding, rank) * 2


@translates("conv1d", "conv2d", "conv3d")
def _conv(
    r: Recorder,
    y: Any,
    *,
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> list[str]:
    rank = weight.ndim - 2
    if input.ndim != weight.ndim:
        raise OnnxError("without a batch")
    return r.node(
        "Conv",
        [r.name(each) for each in (input, weight, bias) if each is not None],
        kernel_shape=list(weight.shape[2:]),
        strides=as_list(stride, rank),
        pads=_pads(input, weight, stride, padding, dilation),
        dilations=as_list(dilation, rank),
        group=groups,
    )


@translates("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def _conv_transpose(
    r: Recorder,
    y: Any,
    *,
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: int,
    dilation: Any,
) -> list[str]:
    rank = weight.ndim - 2
    if input.ndim != weight.ndim:
        raise OnnxError("without a batch")
    return r.node(
        "ConvTranspose",
        [r.name(each) for each in (input, weight, bias) if each is not None],
        kernel_shape=list(weight.shape[2:]),
        strides=as_list(stride, rank),
        pads=as_list(padding, rank) * 2,
        output_padding=as_list(output_padding, rank),
        dilations=as_list(dilation, rank),
        group=groups,
    )


@translates("linear")
def _linear(r: Recorder, y: Any, *, input: Any, weight: Any, bias: Any) -> list[str]:
    if input.ndim == 2:
        names = [r.name(each) for each in (input, weight, bias) if each is not None]
        return r.node("Gemm", names, transB=1)
    turned = r.node("Transpose", [r.name(weight)], perm=[1, 0])
    product = r.node("MatMul", [r.name(input), *turned])
    return product if bias is None else r.node("Add", [*product, r.name(bias)])


@translates("embedding")
def _embedding(r: Recorder, y: Any, *, input: Any, weight: Any, **_: Any) -> list[str]:
    return r.node("Gather", [r.name(weight), r.name(input)], axis=0)


# --- normalization -------------------------------------------------------------------------------


def _filled(r: Recorder, value: Any, like: Tensor, size: int, number: float) -> str:
    if value is not None:
        return r.name(value)
    return r.constant(np.full(size, number, array_of(like).dtype))


@translates("batch_norm")
def _batch_norm(
    r: Recorder,
    y: Any,
    *,
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any,
    bias: Any,
    training: bool,
    momentum: float,
    eps: float,
) -> list[str]:
    if training:
        raise OnnxError("a batch norm without running statistics")
    size = input.shape[1]
    names = [
        r.name(input),
        _filled(r, weight, input, size, 1.0),
        _filled(r, bias, input, size, 0.0),
        r.name(running_mean),
        r.name(running_var),
    ]
    return r.node("BatchNormalization", names, epsilon=eps)


@translates("instance_norm")
def _instance_norm(
    r: Recorder,
    y: Any,
    *,
    input: Any,
    weight: Any,
    bias: Any,
    eps: float,
    use_input_stats: bool,
    **_: Any,
) -> list[str]:
    if not use_input_stats:
        raise OnnxError("an instance norm by running statistics")
    size = input.shape[1]
    weights = [_filled(r, weight, input, size, 1.0), _filled(r, bias, input, size, 0.0)]
    return r.node("InstanceNormalization", [r.name(input), *weights], epsilon=eps)


@translates("group_norm")
def _group_norm(
    r: Recorder, y: Any, *, input: Any, num_groups: int, weight: Any, bias: Any, eps: float
) -> list[str]:
    dtype = array_of(input).dtype
    groups = r.node("Reshape", [r.name(input), ints(r, [0, num_groups, -1])])
    ones, zeros = (r.constant(np.full(num_groups, v, dtype)) for v in (1, 0))
    normal = r.node("InstanceNormalization", [*groups, ones, zeros], epsilon=eps)
    result = r.node("Reshape", [*normal, ints(r, [0, *input.shape[1:]])])
    column = ints(r, [-1, *(1,) * (input.ndim - 2)])
    for op, value in (("Mul", weight), ("Add", bias)):
        if value is not None:
            shaped = r.node("Reshape", [r.name(value), column])
            result = r.node(op, [*result, *shaped])
    return result


@translates("layer_norm")
def _layer_norm(
    r: Recorder, y: Any, *, input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float
) -> list[str]:
    if r.opset < 17:
        raise OnnxError("LayerNormalization is in opset 17 and later")
    shape = list(normalized_shape)
    scale = (
        r.name(weight) if weight is not None else r.constant(np.ones(shape, array_of(input).dtype))
    )
    names = [r.name(input), scale, *([r.name(bias)] if bias is not None else [])]
    return r.node("LayerNormalization", names, axis=-len(shape), epsilon=eps)


@translates("local_response_norm")
def _lrn(
    r: Recorder, y: Any, *, input: Any, size: int, alpha: float, beta: float, k: float
) -> list[str]:
    # For an even size the standard's window has its middle elsewhere.
    if size % 2 == 0:
        raise OnnxError("a local response norm of an even size")
    return r.node("LRN", [r.name(input)], size=size, alpha=alpha, beta=beta, bias=k)


# --- activations ---------------------------------------------------------------------------------

_PLAIN = {
    "abs": "Abs",
    "ceil": "Ceil",
    "cos": "Cos",
    "erf": "Erf",
    "exp": "Exp",
    "expit": "Sigmoid",
    "floor": "Floor",
    "log": "Log",
    "logical_not": "Not",
    "neg": "Neg",
    "reciprocal": "Reciprocal",
    "relu": "Relu",
    "round": "Round",
    "sigmoid": "Sigmoid",
    "sign": "Sign",
    "sin": "Sin",
    "softsign": "Softsign",
    "sqrt": "Sqrt",
    "tanh": "Tanh",
}


def _enter_plain(name: str, op: str) -> None:
    @translates(name)
    def plain(
        r: Recorder, y: Any, *, input: Any, inplace: bool = False, decimals: int = 0
    ) -> list[str]:
        if decimals:
            raise OnnxError(f"decimals={decimals}")
        x = [r.name(input)]
        return r.node(op, x if input.dtype == y.dtype else cast(r, y, *x))


for _name, _op in _PLAIN.items():
    _enter_plain(_name, _op)


def like(input: Tensor, number: float) -> np.ndarray:
    """Return a number in a tensor's dtype."""
    return np.asarray(number, array_of(input).dtype)


@translates("relu6")
def _relu6(r: Recorder, y: Any, *, input: Any, **_: Any) -> list[str]:
    return r.node("Clip", [r.name(input), r.constant(like(input, 0)), r.constant(like(input, 6))])


@translates("hardtanh")
def _hardtanh(
    r: Recorder, y: Any, *, input: Any, min_val: float, max_val: float, **_: Any
) -> list[str]:
    bounds = [r.constant(like(input, each)) for each in (min_val, max_val)]
    return r.node("Clip", [r.name(input), *bounds])


@translates("leaky_relu")
def _leaky_relu(r: Recorder, y: Any, *, input: Any, negative_slope: float, **_: Any) -> list[str]:
    return r.node("LeakyRelu", [r.name(input)], alpha=negative_slope)


@translates("prelu")
def _prelu(r: Recorder, y: Any, *, input: Any, weight: Any) -> list[str]:
    shape = ints(r, [-1, *(1,) * max(input.ndim - 2, 0)])
    slope = r.node("Reshape", [r.name(weight), shape])
    return r.node("PRelu", [r.name(input), *slope])


@translates("elu")
def _elu(r: Recorder, y: Any, *, input: Any, alpha: float, **_: Any) -> list[str]:
    return r.node("Elu", [r.name(input)], alpha=alpha)


@translates("celu")
def _celu(r: Recorder, y: Any, *, input: Any, alpha: float, **_: Any) -> list[str]:
    return r.node("Celu", [r.name(input)], alpha=alpha)


@translates("selu")
def _selu(r: Recorder, y: Any, *, input: Any, **_: Any) -> list[str]:
    return r.node("Selu", [r.name(input)])


@translates("softplus")
def _softplus(r: Recorder, y: Any, *, input: Any, beta: float, threshold: float) -> list[str]:
    if beta != 1 or threshold < 20:
        raise OnnxError(f"beta={beta}, threshold={threshold}")
    return r.node("Softplus", [r.name(input)])


@translates("threshold")
def _threshold(
    r: Recorder, y: Any, *, input: Any, threshold: float, value: float, **_: Any
) -> list[str]:
    above = r.node("Greater", [r.name(input), r.constant(like(input, threshold))])
    return r.node("Where", [*above, r.name(input), r.constant(like(input, value))])


@translates("silu")
def _silu(r: Recorder, y: Any, *, input: Any, **_: Any) -> list[str]:
    return r.node("Mul", [r.name(input), *r.node("Sigmoid", [r.name(input)])])


@translates("mish")
def _mish(r: Recorder, y: Any, *, input: Any, **_: Any) -> list[str]:
    bent = r.node("Tanh", r.node("Softplus", [r.name(input)]))
    return r.node("Mul", [r.name(input), *bent])


@translates("hardsigmoid")
def _hardsigmoid(r: Recorder, y: Any, *, input: Any, **_: Any) -> list[str]:
    return r.node("HardSigmoid", [r.name(input)], alpha=1 / 6, beta=0.5)


@translates("hardswish")
def _hardswish(r: Recorder, y: Any, *, input: Any, **_: Any) -> list[str]:
    gate = r.node("HardSigmoid", [r.name(input)], alpha=1 / 6, beta=0.5)
    return r.node("Mul", [r.name(input), *gate])


@translates("gelu")
def _gelu(r: Recorder, y: Any, *, input: Any, approximate: str) -> list[str]:
    x, half = r.name(input), r.constant(like(input, 0.5))
    one = r.constant(like(input, 1))
    if approximate == "none":
        inner = r.node("Mul", [x, r.constant(like(input, math.sqrt(0.5)))])
        bent = r.node("Erf", inner)
    else:
        cube = r.node("Mul", [x, *r.node("Mul", [x, x])])
        small = r.node("Mul", [*cube, r.constant(like(input, 0.044715))])
        inner = r.node("Add", [x, *small])
        scale = r.constant(like(input, math.sqrt(2 / math.pi)))
        bent = r.node("Tanh", r.node("Mul", [*inner, scale]))
    return r.node("Mul", [*r.node("Mul", [x, half]), *r.node("Add", [*bent, one])])


def _axis(input: Tensor, dim: int | None, dtype: Any) -> int:
    """Return softmax's axis; without one, that of PyTorch's old rule."""
    if dtype is not None:
        raise OnnxError(f"dtype={dtype}")
    if dim is None:
        dim = 0 if input.ndim in (0, 1, 3) else 1
    return dim


@translates("softmax")
def _softmax(
    r: Recorder, y: Any, *, input: Any, dim: Any, dtype: Any = None, _stacklevel: int = 3
) -> list[str]:
    return r.node("Softmax", [r.name(input)], axis=_axis(input, dim, dtype))


@translates("log_softmax")
def _log_softmax(
    r: Recorder, y: Any, *, input: Any, dim: Any, dtype: Any = None, _stacklevel: int = 3
) -> list[str]:
    return r.node("LogSoftmax", [r.name(input)], axis=_axis(input, dim, dtype))


@translates(
    "dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"
)
def _dropout(r: Recorder, y: Any, *, input: Any, training: bool, **_: Any) -> list[str]:
    if training:
        raise OnnxError("dropout in training mode")
    return r.node("Identity", [r.name(input)])


# --- pooling --------------------------------------------------------------------------------------


def _of_ranks(name: str) -> Callable[[Callable[..., list[str]]], Callable[..., list[str]]]:
    """Enter a translation for one, two and three axes, which it gets first."""

    def enter(function: Callable[..., list[str]]) -> Callable[..., list[str]]:
        for rank in (1, 2, 3):
            TRANSLATIONS[f"{name}{rank}d"] = partial(_batched, function, rank)
        return function

    return enter


def _batched(
    function: Callable[..., list[str]], rank: int, r: Recorder, y: Any, *, input: Any, **rest: Any
) -> list[str]:
    if input.ndim != rank + 2:
        raise OnnxError("without a batch")
    return function(rank, r, y, input=input, **rest)


@_of_ranks("max_pool")
def _max_pool(
    rank: int,
    r: Recorder,
    y: Any,
    *,
    input: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    return_indices: bool,
) -> list[str]:
    if return_indices:
        raise OnnxError("with indices")
    return r.node(
        "MaxPool",
        [r.name(input)],
        kernel_shape=as_list(kernel_size, rank),
        strides=as_list(kernel_size if stride in (None, ()) else stride, rank),
        pads=as_list(padding, rank) * 2,
        dilations=as_list(dilation, rank),
        ceil_mode=int(ceil_mode),
    )


@_of_ranks("avg_pool")
def _avg_pool(
    rank: int,
    r: Recorder,
    y: Any,
    *,
    input: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: Any = None,
) -> list[str]:
    if divisor_override is not None:
        raise OnnxError(f"divisor_override={divisor_override}")
    return r.node(
        "AveragePool",
        [r.name(input)],
        kernel_shape=as_list(kernel_size, rank),
        strides=as_list(kernel_size if stride in (None, ()) else stride, rank),
        pads=as_list(padding, rank) * 2,
        ceil_mode=int(ceil_mode),
        count_include_pad=int(count_include_pad),
    )


def _adaptive(r: Recorder, y: Any, input: Any, ops: tuple[str, str]) -> list[str]:
    sizes, outs = input.shape[2:], y.shape[2:]
    if all(o == 1 for o in outs):
        return r.node(ops[0], [r.name(input)])
    if r.sizes_are_free or any(n % o for n, o in zip(sizes, outs, strict=True)):
        raise OnnxError(f"{tuple(sizes)} to {tuple(outs)}: windows of one size do not give that")
    kernel = [n // o for n, o in zip(sizes, outs, strict=True)]
    return r.node(ops[1], [r.name(input)], kernel_shape=kernel, strides=kernel)


@_of_ranks("adaptive_avg_pool")
def _adaptive_avg(rank: int, r: Recorder, y: Any, *, input: Any, output_size: Any) -> list[str]:
    return _adaptive(r, y, input, ("GlobalAveragePool", "AveragePool"))


@_of_ranks("adaptive_max_pool")
def _adaptive_max(
    rank: int,
    r: Recorder,
    y: Any,
    *,
    input: Any,
    output_size: Any,
    return_indices: bool = False,
) -> list[str]:
    if return_indices:
        raise OnnxError("with indices")
    return _adaptive(r, y, input, ("GlobalMaxPool", "MaxPool"))


@translates("interpolate", "upsample")
def _interpolate(
    r: Recorder,
    y: Any,
    *,
    input: Any,
    size: Any,
    scale_factor: Any,
    mode: str,
    align_corners: Any,
    recompute_scale_factor: Any = None,
    antialias: bool = False,
) -> list[str]:
    modes = {"bicubic": "cubic", **dict.fromkeys(("linear", "bilinear", "trilinear"), "linear")}
    sizes, outs = input.shape[2:], y.shape[2:]
    if antialias or mode not in (*modes, "nearest"):
        raise OnnxError(f"mode={mode!r}, antialias={antialias}")
    if mode == "nearest":
        return _nearest(r, input, sizes, outs)
    if scale_factor is not None and not recompute_scale_factor:
        factors = [1.0, 1.0, *(_numbers(scale_factor, len(sizes)))]
        wanted = ["", r.constant(np.asarray(factors, np.float32))]
    else:
        (shape,) = r.node("Shape", [r.name(input)])
        batch = r.node("Slice", [shape, ints(r, [0]), ints(r, [2])])
        wanted = ["", "", *r.node("Concat", [*batch, ints(r, outs)], axis=0)]
    return r.node(
        "Resize",
        [r.name(input), *wanted],
        mode=modes[mode],
        coordinate_transformation_mode="align_corners" if align_corners else "pytorch_half_pixel",
        cubic_coeff_a=-0.75,
    )


def _numbers(value: Any, rank: int) -> list[float]:
    return [float(v) for v in value] if isinstance(value, tuple | list) else [float(value)] * rank


def _nearest(r: Recorder, input: Any, sizes: Sequence[int], outs: Sequence[int]) -> list[str]:
    """Repeat pixels; by a factor that is no whole number, by their indices, which are exact."""
    if all(o % n == 0 for n, o in zip(sizes, outs, strict=True)):
        factors = [1, 1, *(o // n for n, o in zip(sizes, outs, strict=True))]
        return r.node(
            "Resize",
            [r.name(input), "", r.constant(np.asarray(factors, np.float32))],
            mode="nearest",
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        )
    if r.sizes_are_free:
        raise OnnxError(f"nearest from {tuple(sizes)} to {tuple(outs)} where sizes are free")
    names = [r.name(input)]
    for axis, (n, o) in enumerate(zip(sizes, outs, strict=True), 2):
        line = arange(n, dtype=float32).reshape(1, 1, n)
        index = interpolate(line, size=o).reshape(-1).to(int64)
        names = r.node("Gather", [*names, r.constant(index.numpy())], axis=axis)
    return names


@translates("pad")
def _pad(r: Recorder, y: Any, *, input: Any, pad: Any, mode: str, value: Any) -> list[str]:
    names = {"constant": "constant", "reflect": "reflect", "replicate": "edge"}
    pairs = [(0, 0)] * (input.ndim - len(pad) // 2)
    pairs += [(pad[k], pad[k + 1]) for k in range(len(pad) - 2, -1, -2)]
    if mode == "circular":
        return _wrapped(r, input, pairs)
    if mode not in names:
        raise OnnxError(f"padding with mode {mode!r}")
    amounts = ints(r, [a for a, _ in pairs] + [b for _, b in pairs])
    fill = r.constant(like(input, value or 0))
    return r.node("Pad", [r.name(input), amounts, fill], mode=names[mode])


def _wrapped(r: Recorder, input: Any, pairs: Sequence[tuple[int, int]]) -> list[str]:
    """Put the values of the other end before and after each axis: Pad does so from opset 19 on."""
    names = [r.name(input)]
    for axis, (before, after) in enumerate(pairs):
        if before < 0 or after < 0:
            raise OnnxError("circular padding by negative amounts")
        parts = list(names)
        if before:
            parts = [*_cut(r, names, axis, -before, np.iinfo(np.int64).max), *parts]
        if after:
            parts = [*parts, *_cut(r, names, axis, 0, after)]
        if len(parts) > 1:
            names = r.node("Concat", parts, axis=axis)
    return names


def _cut(r: Recorder, names: Sequence[str], axis: int, start: int, stop: int) -> list[str]:
    return r.node("Slice", [*names, *(ints(r, [each]) for each in (start, stop, axis))])


@translates("pixel_shuffle")
def _pixel_shuffle(r: Recorder, y: Any, *, input: Any, upscale_factor: int) -> list[str]:
    return r.node("DepthToSpace", [r.name(input)], blocksize=upscale_factor, mode="CRD")


# --- shapes --------------------------------------------------------------------------------------


def _joins_first(old: Sequence[int], new: Sequence[int]) -> bool:
    """Return whether the first size is the product of several that were at the start."""
    products = [math.prod(old[:k]) for k in range(2, len(old) + 1)]
    return bool(new) and new[0] in products and new[0] != old[0]


def _splits_first(old: Sequence[int], new: Sequence[int]) -> bool:
    """Return whether the first size becomes several, and the last one stays."""
    return len(old) > 2 and new[0] not in (old[0], 1) and old[-1] == new[-1]


def _reshape(r: Recorder, y: Any, x: Any, given: Sequence[int]) -> list[str]:
    """Reshape; sizes at the start that are taken over, or joined to the first one, stay free."""
    sizes, kept = list(given), True
    if -1 not in sizes and _joins_first(x.shape, y.shape):
        sizes[0] = -1
    elif sizes[-1:] == [-1] and _splits_first(x.shape, y.shape) and not r.sizes_are_free:
        sizes[-1] = y.shape[-1]  # or it would take what another batch has more
    for axis, size in enumerate(y.shape):
        kept = kept and axis < x.ndim and size == x.shape[axis] and size != 0
        if kept and sizes[axis] != -1:
            sizes[axis] = 0
    if 0 in y.shape:
        raise OnnxError(f"a reshape to {tuple(y.shape)}")
    return r.node("Reshape", [r.name(x), ints(r, sizes)])


@translates("view", "reshape")
def _view(
    r: Recorder,
    y: Any,
    *,
    input: Any,
    size: Any = None,
    shape: Any = None,
    more: Any = (),
    dtype: Any = None,
) -> list[str]:
    if dtype is not None:
        raise OnnxError("a view as another dtype")
    first = size if shape is None else shape
    sizes = list(first) if isinstance(first, tuple | list) else [first, *more]
    return _reshape(r, y, input, sizes)


@translates("flatten")
def _flatten(r: Recorder, y: Any, *, input: Any, start_dim: int, end_dim: int) -> list[str]:
    if start_dim == 1 and end_dim in (-1, input.ndim - 1):
        return r.node("Flatten", [r.name(input)], axis=1)
    joined = start_dim % max(input.ndim, 1)
    return _reshape(r, y, input, [-1 if k == joined else n for k, n in enumerate(y.shape)])


@translates("unflatten")
def _unflatten(r: Recorder, y: Any, *, input: Any, **_: Any) -> list[str]:
    return _reshape(r, y, input, [*y.shape])


@translates("permute")
def _permute(r: Recorder, y: Any, *, input: Any, dims: Any, more: Any = ()) -> list[str]:
    order = list(dims) if isinstance(dims, tuple | list) else [dims, *more]
    return r.node("Transpose", [r.name(input)], perm=[d % input.ndim for d in order])


@translates("transpose", "swapdims")
def _transpose(r: Recorder, y: Any, *, input: Any, dim0: int, dim1: int) -> list[str]:
    order = list(range(input.ndim))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return r.node("Transpose", [r.name(input)], perm=order)


@translates("t")
def _t(r: Recorder, y: Any, *, input: Any) -> list[str]:
    return r.node("Transpose", [r.name(input)])


@translates("squeeze")
def _squeeze(r: Recorder, y: Any, *, input: Any, dim: Any, more: tuple[int, ...]) -> list[str]:
    axes = range(input.ndim) if dim is None else [*as_list(dim, 1), *more]
    gone = [a % input.ndim for a in axes if input.shape[a] == 1]
    return (
        r.node("Squeeze", [r.name(input), ints(r, gone)])
        if gone
        else r.node("Identity", [r.name(input)])
    )


@translates("unsqueeze")
def _unsqueeze(r: Recorder, y: Any, *, input: Any, dim: int) -> list[str]:
    return r.node("Unsqueeze", [r.name(input), ints(r, [dim])])


@translates("cat", "concat", "concatenate")
def _cat(r: Recorder, y: Any, *, tensors: Any, dim: int) -> list[str]:
    return r.node("Concat", [r.name(t) for t in tensors], axis=dim % y.ndim)


@translates("stack")
def _stack(r: Recorder, y: Any, *, tensors: Any, dim: int) -> list[str]:
    axis = ints(r, [dim % y.ndim])
    parts = [r.node("Unsqueeze", [r.name(t), axis])[0] for t in tensors]
    return r.node("Concat", parts, axis=dim % y.ndim)


@translates("split", "chunk", "tensor_split", "unsafe_split", "unsafe_chunk", "split_with_sizes")
def _split(r: Recorder, y: Any, /, *, dim: int, **arguments: Any) -> list[str]:
    x = next(iter(arguments.values()))
    sizes = ints(r, [part.shape[dim] for part in y])
    return r.node("Split", [r.name(x), sizes], count=len(y), axis=dim % x.ndim)


@translates("contiguous", "clone", "positive", "detach", "alias")
def _same(r: Recorder, y: Any, *, input: Any, memory_format: Any = None) -> list[str]:
    return r.node("Identity", [r.name(input)])


def cast(r: Recorder, y: Any, name: str) -> list[str]:
    """Return the name of a value, cast to a tensor's dtype."""
    return r.node("Cast", [name], to=helper.np_dtype_to_tensor_dtype(array_of(y).dtype))


@translates(
    "to", "float", "double", "long", "int", "half", "type_as", "bool", "short", "char", "byte"
)
def _to(r: Recorder, y: Any, /, **arguments: Any) -> list[str]:
    return cast(r, y, r.name(next(iter(arguments.values()))))


# --- arithmetic ----------------------------------------------------------------------------------


@translates("pow")
def _pow(r: Recorder, y: Any, *, input: Any, exponent: Any) -> list[str]:
    return r.node("Pow", operands(r, y, input, exponent))


@translates("square")
def _square(r: Recorder, y: Any, *, input: Any) -> list[str]:
    return r.node("Mul", [r.name(input), r.name(input)])


@translates("maximum")
def _maximum(r: Recorder, y: Any, *, input: Any, other: Any) -> list[str]:
    return r.node("Max", operands(r, y, input, other))


@translates("minimum")
def _minimum(r: Recorder, y: Any, *, input: Any, other: Any) -> list[str]:
    return r.node("Min", operands(r, y, input, other))


@translates("matmul", "mm", "bmm")
def _matmul(r: Recorder, y: Any, /, **arguments: Any) -> list[str]:
    a, b, *_ = arguments.values()
    return r.node("MatMul", [r.name(a), r.name(b)])


def _reduction(name: str, op: str, *, axes_are_input: Callable[[int], bool]) -> None:
    @translates(name)
    def reduced(
        r: Recorder,
        y: Any,
        *,
        input: Any,
        dim: Any = None,
        keepdim: bool = False,
        dtype: Any = None,
    ) -> list[str]:
        everything = dim is None or dim == ()
        axes = list(range(input.ndim)) if everything else [a % input.ndim for a in as_list(dim, 1)]
        x = [r.name(input)]
        x = x if input.dtype == y.dtype else cast(r, y, *x)
        if axes_are_input(r.opset):
            return r.node(op, [*x, ints(r, axes)], keepdims=int(keepdim))
        return r.node(op, x, axes=axes, keepdims=int(keepdim))


for _name, _op in {
    "mean": "ReduceMean",
    "amax": "ReduceMax",
    "amin": "ReduceMin",
    "logsumexp": "ReduceLogSumExp",
}.items():
    _reduction(_name, _op, axes_are_input=lambda opset: opset >= 18)
_reduction("sum", "ReduceSum", axes_are_input=lambda opset: True)
