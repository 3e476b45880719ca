"""Nodes that become layers of ``nn``: convolutions, batch norms, activations, linear layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import convcore
from convcore import Tensor, nn
from convcore.onnx import nodes
from convcore.onnx.values import Value, is_differentiable

# Names of a layer's tensors, by the positions of the node's inputs.
LAYER_TENSORS = ("", "weight", "bias", "running_mean", "running_var")
_CONVOLUTIONS: dict[int, Any] = {3: nodes.Conv1d, 4: nodes.Conv2d, 5: nodes.Conv3d}


def layer_of(
    op_type: str, constants: Sequence[Value], options: dict[str, Any], outputs: int
) -> nodes.Node | None:
    """Return the layer of a node, or None where no layer does what it does.

    Parameters
    ----------
    op_type : str
    constants : sequence
        The node's inputs, None where one is computed; weights are parameters.
    options : dict
        The node's attributes.
    outputs : int
        How many outputs the node has.
    """
    make: Any = _LAYERS.get(op_type)
    if make is None or outputs != 1 or not constants or constants[0] is not None:
        return None
    return make(*constants[1:], **options)


def _are_weights(*values: Value) -> bool:
    return all(map(is_differentiable, values))


def _set(layer: nn.Module, weight: nn.Parameter, bias: nn.Parameter | None) -> nn.Module:
    layer.weight, layer.bias = weight, bias
    return layer


def _convolution(weight: Value = None, bias: Value = None, **options: Any) -> nn.Module | None:
    if not _are_weights(weight) or weight.ndim not in _CONVOLUTIONS:
        return None
    if bias is not None and not _are_weights(bias):
        return None
    rank = weight.ndim - 2
    pads = options.get("pads") or [0] * (2 * rank)
    before, after = pads[:rank], pads[rank:]
    auto_pad = options.get("auto_pad", "NOTSET")
    if before != after or min(pads) < 0 or auto_pad not in ("NOTSET", "VALID"):
        return None
    group = options.get("group", 1)
    kernel = tuple(weight.shape[2:])
    if options.get("kernel_shape") not in (None, list(kernel)) or weight.shape[0] % group:
        return None
    layer = _CONVOLUTIONS[weight.ndim](
        weight.shape[1] * group,
        weight.shape[0],
        kernel,
        stride=tuple(options.get("strides") or [1] * rank),
        padding=tuple([0] * rank if auto_pad == "VALID" else before),
        dilation=tuple(options.get("dilations") or [1] * rank),
        groups=group,
        bias=bias is not None,
        device="meta",
    )
    return _set(layer, weight, bias)


def _batch_norm(
    weight: Value = None, bias: Value = None, mean: Value = None, var: Value = None, **options: Any
) -> nn.Module | None:
    same = (
        _are_weights(weight, bias, mean, var)
        and weight.dtype == bias.dtype == mean.dtype == var.dtype
    )
    if not same or options.get("training_mode") or options.get("spatial", 1) != 1:
        return None
    if options.get("version", 9) < 7 and not options.get("is_test"):
        return None
    layer = nodes.BatchNorm(
        len(weight), eps=options["epsilon"], momentum=1 - options["momentum"], device="meta"
    )
    layer.running_mean, layer.running_var = mean.clone(), var.clone()
    layer.num_batches_tracked = convcore.tensor(0)
    return _set(layer, weight, bias)


def _relu(**options: Any) -> nn.Module:
    return nodes.ReLU()


def _leaky_relu(**options: Any) -> nn.Module:
    return nodes.LeakyReLU(options["alpha"])


def _clip(low: Value = None, high: Value = None, **options: Any) -> nn.Module | None:
    low, high = (options.get("min"), options.get("max")) if low is high is None else (low, high)
    if low is None or high is None or (isinstance(low, Tensor) and not low.is_floating_point()):
        return None
    if (float(low), float(high)) != (0.0, 6.0):
        return None
    return nodes.ReLU6()


def _dropout(probability: Value = None, training: Value = None, **options: Any) -> nn.Module | None:
    if training is not None and bool(training):
        return None
    p = options.get("ratio", 0.5) if probability is None else float(probability)
    return nodes.Dropout(p)


def _linear(weight: Value = None, bias: Value = None, **options: Any) -> nn.Module | None:
    plain = options.get("alpha") == options.get("beta") == 1 and not options.get("transA")
    if not plain or not _are_weights(weight) or weight.ndim != 2:
        return None
    if bias is not None and (not _are_weights(bias) or bias.ndim != 1 or not options.get("transB")):
        return None
    if not options.get("transB"):
        return None
    if bias is not None and len(bias) != weight.shape[0]:
        return None
    layer = nodes.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, device="meta")
    return _set(layer, weight, bias)


_LAYERS = {
    "BatchNormalization": _batch_norm,
    "Clip": _clip,
    "Conv": _convolution,
    "Dropout": _dropout,
    "Gemm": _linear,
    "LeakyRelu": _leaky_relu,
    "Relu": _relu,
}
