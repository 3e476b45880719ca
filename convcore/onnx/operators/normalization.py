"""Normalization: batch, instance, group, layer, RMS, local response, L_p."""

from __future__ import annotations

from typing import Any

import convcore
from convcore.nn import functional as F
from convcore.onnx.operators.registry import operator
from convcore.onnx.values import Value, axis_of


@operator("BatchNormalization", weights=(1, 2))
def batch_normalization(
    x: Value,
    scale: Value,
    bias: Value,
    mean: Value,
    var: Value,
    *,
    version: int,
    outputs: int,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
    is_test: int = 0,
    spatial: int = 1,
) -> Any:
    """Return a batch normalized by running statistics, or by its own."""
    if version < 14 and outputs > 1:  # more than one were of training
        training_mode = 1
    axes = (0, *range(2, x.ndim)) if spatial else (0,)
    if not training_mode:
        return _scaled(x, mean, var, scale, bias, epsilon, spatial)
    own = x.mean(axes)
    spread = ((x - _channels(own, x, spatial)) ** 2).mean(axes)
    y = _scaled(x, own, spread, scale, bias, epsilon, spatial)
    running = mean * momentum + own * (1 - momentum), var * momentum + spread * (1 - momentum)
    return (y, *running, own, spread)[:outputs] if outputs > 1 else y


def _channels(vector: Value, x: Value, spatial: int = 1) -> Value:
    return vector.reshape([-1, *(1,) * (x.ndim - 2)]) if spatial else vector


def _scaled(
    x: Value, mean: Value, var: Value, scale: Value, bias: Value, epsilon: float, spatial: int
) -> Value:
    mean, var, scale, bias = (_channels(each, x, spatial) for each in (mean, var, scale, bias))
    return ((x - mean) / convcore.sqrt(var + epsilon) * scale + bias).to(x.dtype)


@operator("InstanceNormalization", weights=(1, 2))
def instance_normalization(x: Value, scale: Value, bias: Value, *, epsilon: float) -> Value:
    """Return each channel of each image with mean 0 and variance 1, scaled and shifted."""
    return F.group_norm(x, x.shape[1], scale, bias, epsilon)


@operator("GroupNormalization", weights=(1, 2))
def group_normalization(
    x: Value,
    scale: Value,
    bias: Value,
    *,
    version: int,
    num_groups: int,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Value:
    """Return each group of channels with mean 0 and variance 1, scaled and shifted."""
    if version < 21:  # a scale a group
        each = x.shape[1] // num_groups
        scale, bias = scale.repeat_interleave(each), bias.repeat_interleave(each)
    return F.group_norm(x, num_groups, scale, bias, epsilon)


@operator("LayerNormalization", weights=(1, 2))
def layer_normalization(
    x: Value,
    scale: Value,
    bias: Value = None,
    *,
    outputs: int,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Any:
    """Return the axes from one on with mean 0 and variance 1, scaled and shifted."""
    axes = tuple(range(axis_of(axis, x.ndim), x.ndim))
    if outputs == 1 and scale.shape == x.shape[axes[0] :]:
        return F.layer_norm(x, scale.shape, scale, bias, epsilon)
    source = x.to(convcore.float32) if stash_type == 1 and x.dtype is convcore.float16 else x
    mean = source.mean(axes, keepdim=True)
    inverse = ((source - mean) ** 2).mean(axes, keepdim=True).add(epsilon).rsqrt()
    y = ((source - mean) * inverse).to(x.dtype) * scale
    y = y if bias is None else y + bias
    return (y, mean, inverse)[:outputs] if outputs > 1 else y


@operator("RMSNormalization", weights=(1,))
def rms_normalization(
    x: Value, scale: Value, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Value:
    """Return the axes from one on with a mean square of 1, scaled."""
    axes = tuple(range(axis_of(axis, x.ndim), x.ndim))
    source = x.to(convcore.float32) if stash_type == 1 and x.dtype is convcore.float16 else x
    normal = source * (source**2).mean(axes, keepdim=True).add(epsilon).rsqrt()
    return normal.to(x.dtype) * scale


@operator("LRN")
def lrn(
    x: Value, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> Value:
    """Return each element over a power of the sum of squares of channels around it."""
    squares = F.pad((x * x).unsqueeze(1), [0, 0] * (x.ndim - 2) + [(size - 1) // 2, size // 2])
    sums = sum(squares[:, 0, k : k + x.shape[1]] for k in range(size))
    return x / (bias + alpha / size * sums) ** beta


@operator("MeanVarianceNormalization")
def mean_variance_normalization(x: Value, *, axes: list[int] | None = None) -> Value:
    """Return the tensor with mean 0 and variance 1 along axes."""
    axes = [0, 2, 3] if axes is None else axes
    centred = x - x.mean(axes, keepdim=True)
    return centred / (convcore.sqrt((centred**2).mean(axes, keepdim=True)) + 1e-9)


@operator("LpNormalization")
def lp_normalization(x: Value, *, axis: int = -1, p: int = 2) -> Value:
    """Return rows with an L_p norm of 1; rows of zeros stay."""
    norm = (
        (x.abs() ** p).sum(axis, keepdim=True) ** (1 / p)
        if p != 1
        else x.abs().sum(axis, keepdim=True)
    )
    return convcore.where(norm == 0, convcore.zeros_like(x), x / norm)
