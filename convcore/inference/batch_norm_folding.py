"""Fold batch norm, with its running statistics, into the weights of the convolution before it.

References
----------
B. Jacob et al., "Quantization and training of neural networks for efficient integer-arithmetic-only
inference", CVPR 2018, section 3.2, for the folding.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore.engine.runtime.checks import Array
from convcore.engine.runtime.errstate import quiet
from convcore.nn import Module


def scale_and_shift(norm: Module) -> tuple[Array, Array]:
    """Return scale and shift of a batch norm's y = x * scale + shift, (C,), in float64."""
    mean, var = (t._array.astype("f8") for t in (norm.running_mean, norm.running_var))
    scale = 1 / np.sqrt(var + norm.eps)
    if norm.weight is not None:
        scale = scale * norm.weight._array
    shift = -mean * scale
    if norm.bias is not None:
        shift = shift + norm.bias._array
    return scale, shift


def folded(weight: Array, bias: Array | None, norm: Module | None) -> tuple[Array, Array | None]:
    """Return the weight and bias of a convolution and the batch norm after it.

    weight : (C_out, C_in/G, *kernel), bias : (C_out,); computed in float64 and rounded once.
    """
    if norm is None:
        return weight, bias
    scale, shift = scale_and_shift(norm)
    if bias is not None:
        shift = shift + bias * scale
    scales = scale.reshape(-1, *[1] * (weight.ndim - 1))
    return (weight * scales).astype(weight.dtype), shift.astype(weight.dtype)


def unfolded(weight: Array, norm: Module, lost: dict[int, Array]) -> Array:
    """Return the weight of a convolution before a batch norm was folded into it.

    weight : (C_out, C_in/G, *kernel); lost : see `lost_filters`
    """
    scale, _ = scale_and_shift(norm)
    scales = scale.reshape(-1, *[1] * (weight.ndim - 1))
    made = channels_last(quiet(np.true_divide, weight, scales), weight.dtype)
    for channel, filters in lost.items():
        made[channel] = filters
    return made


def lost_filters(weight: Array, norm: Module) -> dict[int, Array]:
    """Return the filters by channel that cannot be computed back from folded ones.

    A batch norm's scale of (almost) 0 leaves nothing of them.
    """
    scale, _ = scale_and_shift(norm)
    largest = np.abs(weight).reshape(len(weight), -1).max(1, initial=0) * np.abs(scale)
    is_lost = ~((largest > 1e-30) & (largest < 1e30))
    return {int(channel): np.array(weight[channel]) for channel in np.flatnonzero(is_lost)}


def channels_last(weight: Array, dtype: Any = None) -> Array:
    """Return a channels_last copy of (C_out, C_in/G, *kernel) weights.

    A convolution with such weights has channels_last outputs.  With one channel, where both
    formats have the same memory, the copy's strides tell the format.
    """
    shape = (weight.shape[0], *weight.shape[2:], weight.shape[1])
    dense = np.empty(shape, dtype or weight.dtype)
    moved = np.moveaxis(dense, -1, 1)
    quiet(np.copyto, moved, weight, "same_kind")
    return moved
