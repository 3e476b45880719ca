"""Batch, group and instance norm, with optional residual and clamp in the same pass; gradients.

y = (x - mean) / sqrt(variance + eps) * weight + bias, where mean and variance are those of a
channel over the whole batch (batch norm), or of a group of channels of one image (group norm; with
one channel per group, instance norm).

Sums use float64, and variances are computed about an element of the sum, so that neither a large
mean nor a large array loses digits: see engine/layers/norm/norm.h for the bound.

References
----------
S. Ioffe, C. Szegedy, "Batch normalization", ICML 2015.
Y. Wu, K. He, "Group normalization", ECCV 2018.
D. Ulyanov, A. Vedaldi, V. Lempitsky, "Instance normalization", 2016.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from convcore.engine.layers.elementwise.elementwise import empty_like, laid_out_like
from convcore.engine.layers.norm._norm import ACTIVATIONS
from convcore.engine.layers.norm._norm_nchw import NormNchw
from convcore.engine.layers.norm._norm_nhwc import NormNhwc
from convcore.engine.runtime import layout, memory
from convcore.engine.runtime.casts import bits

Array = np.ndarray[Any, Any]

_SINGLE = np.dtype(np.float32)

# Minimum elements of an item, and maximum chunks.  On one thread 8192 to 131072 elements are within
# 3 % in the mean, and so are 16 and 256 chunks:
# benchmarks/sweep.py --threads 1 --constant engine.layers.norm.norm._LEAST_ITEM
# --values 8192,131072
_LEAST_ITEM = 1 << 15
_MOST_CHUNKS = 64

# Minimum elements of a microkernel's row; fewer channels are repeated.  128 and 1024 are 1 to 6 %
# faster, which is noise:
# benchmarks/sweep.py --threads 1 --constant engine.layers.norm.norm._ROW --values 128,1024
_ROW = 256

# Multiply-adds that take as long as one element, forward and backward.
_WORK = 8.0

# [low, high] of the supported activations.
CLAMPS = {"relu": (0.0, math.inf), "relu6": (0.0, 6.0)}


class _Plan(NamedTuple):
    """Kernel for an array's shape and layout, and the sizes of the kernel's small arrays."""

    kernel: Any
    units: int
    images: int
    channels: int
    repeat: int = 1  # repetitions of a weight in the parameters, per image
    workspace: int = 0  # bytes

    def parameters(self, dtype: np.dtype, weight: Array | None, bias: Array | None) -> Array:
        """Return the kernel's parameters, with weight and bias repeated where necessary."""
        wide = _SINGLE if dtype.char == "E" else dtype
        parameters = np.empty((5, self.images * self.repeat, self.channels), wide)
        np.copyto(parameters[1], 1 if weight is None else weight)
        np.copyto(parameters[2], 0 if bias is None else bias)
        return parameters

    def run(
        self, arrays: dict[str, Any], eps: float, moments: bool, activation: str | None, how: str
    ) -> None:
        """Run the kernel; ``how``: the array from which gradients derive the activation."""
        clamp = CLAMPS[activation] if activation else (0.0, 0.0)
        call = eps, moments, ACTIVATIONS[how if activation else "linear"], *clamp
        if not self.workspace:
            self.kernel.run(arrays, *call)
            return
        threads = stage = 0
        if arrays["x"].dtype.char == "E":
            arrays = {name: None if one is None else bits(one) for name, one in arrays.items()}
            threads = self.kernel.threads()
            stage = threads * self.kernel.stage
        scratch = arrays["workspace"] = memory.take(self.workspace + stage)
        self.kernel.run(arrays, *call, threads)
        memory.give(scratch)


@lru_cache(maxsize=1024)
def _plan(shape: tuple[int, ...], groups: int | None, channels_last: bool) -> _Plan:
    """Return the plan for an (N, C, *sizes) array; ``groups`` is None for a batch norm."""
    n, channels = shape[:2]
    pixels = math.prod(shape[2:])
    work = _WORK * n * channels * pixels
    if channels_last:
        images, units = (1, channels) if groups is None else (n, n * groups)
        return _plan_nhwc(images, n * pixels // images, channels, units, work)
    if groups is None:
        planes, units, step, plane_step, weights = n, channels, pixels, channels * pixels, 1
    else:
        planes = weights = channels // groups
        units, step, plane_step = n * groups, planes * pixels, pixels
    fields = {
        "units": units, "planes": planes, "pixels": pixels, "unit_step": step,
        "plane_step": plane_step, "weights": weights,
        "block": max(1, _LEAST_ITEM // max(1, planes * pixels)),
    }  # fmt: skip
    return _Plan(NormNchw(fields, work), units, 1 if groups is None else n, channels)


def _plan_nhwc(images: int, pixels: int, channels: int, units: int, work: float) -> _Plan:
    # Each repetition adds sums of its own: at most about as many as there are rows.
    repeat = max(1, min(_ROW // channels, math.isqrt(4 * pixels // channels)))
    rows, width = pixels // repeat, repeat * channels
    block = max(8, _LEAST_ITEM // width, math.ceil(rows * images / _MOST_CHUNKS))
    chunks = max(1, math.ceil(rows / block))
    fields = {
        "images": images, "pixels": pixels, "channels": channels, "groups": units // images,
        "repeat": repeat, "chunks": chunks, "block": block,
    }  # fmt: skip
    workspace = images * (2 * chunks + 1) * width * 8
    return _Plan(NormNhwc(fields, work), units, images, channels, repeat, workspace)


def _is_channels_last(x: Array, groups: int | None) -> bool | None:
    """Return whether a dense array's channels vary fastest, or None if it has gaps."""
    if x.flags.c_contiguous:
        return groups is None and math.prod(x.shape[2:]) == 1
    if x.transpose(0, *range(2, x.ndim), 1).flags.c_contiguous:
        return True
    return None


def _laid_out(x: Array, groups: int | None) -> tuple[Array, bool]:
    """Return the array, copied if it has gaps, and whether its channels vary fastest."""
    channels_last = _is_channels_last(x, groups) if x.flags.aligned else None
    if channels_last is not None:
        return x, channels_last
    copy = layout.empty(x.shape, x.dtype, layout.is_channels_last(x.shape, x.strides))
    np.copyto(copy, x)
    return copy, bool(_is_channels_last(copy, groups))


def reads(x: Array, groups: int | None = None) -> bool:
    """Return whether `forward` and `backward` accept an array: bfloat16 only as dense NHWC."""
    if x.dtype.char not in "eE":
        return True
    return x.dtype.char == "E" and x.flags.aligned and _is_channels_last(x, groups) is True


def forward(
    x: Array,
    weight: Array | None,
    bias: Array | None,
    eps: float,
    groups: int | None = None,
    statistics: Array | None = None,
    residual: Array | None = None,
    activation: str | None = None,
    out: Array | None = None,
) -> tuple[Array, Array]:
    """Normalise, optionally add a residual and clamp.

    Parameters
    ----------
    x : (N, C, *sizes), float32 or float64; or bfloat16, if `reads` returns True
    weight, bias : (C,), the same dtype, float32 if x is bfloat16; or None for ones and zeros
    eps : float
        Added to variances.
    groups : int, optional
        Number of channel groups of each image that are normalised separately; None: each channel is
        normalised over the whole batch.
    statistics : (2, C) float64, optional
        Means and variances to use instead of x's own.
    residual : Array like x, optional
    activation : 'relu', 'relu6' or None
    out : Array, optional
        Array for y, with x's shape, dtype and strides, dense in one of the two memory formats.

    Returns
    -------
    y : Array
        Of x's shape, dtype and memory format.
    statistics : (2, C) or (2, N * groups), float64
        Means and biased variances (divided by n, not n - 1).

    Notes
    -----
    Batch norm of NCHW reads x from memory once if a channel fits in cache; of NHWC twice.  Parallel
    over channels, or over chunks of pixels fixed by the shape: the bits do not depend on the number
    of threads.
    """
    x, channels_last = _laid_out(x, groups)
    plan = _plan(x.shape, groups, channels_last)
    moments = statistics is None
    if statistics is None:
        statistics = np.zeros((2, plan.units))
    y = empty_like(x) if out is None else out
    if residual is not None:
        residual = laid_out_like(residual, x)
    if x.size:
        arrays = {"x": x, "residual": residual, "y": y, "statistics": statistics}
        arrays["parameters"] = plan.parameters(x.dtype, weight, bias)
        plan.run(arrays, eps, moments, activation, "from_result")
    return y, statistics


def backward(
    grad: Array,
    x: Array,
    weight: Array | None,
    bias: Array | None,
    eps: float,
    statistics: Array,
    given: bool,
    groups: int | None = None,
    activation: str | None = None,
    result: Array | None = None,
    needs_input: bool = True,
) -> tuple[Array | None, Array, Array, Array]:
    """Compute the gradients of `forward`.

    Parameters
    ----------
    grad : Array like x
        The gradient of y.
    x, weight, bias, eps, groups, activation
        As in the forward pass.
    statistics : Array
        Returned by `forward`.
    given : bool
        Whether the statistics were given, and so do not depend on x.
    result : Array like x, optional
        y.  Needed if both a residual was added and an activation applied; otherwise the
        activation's mask is derived from x.
    needs_input : bool
        Whether to compute the gradient of x.

    Returns
    -------
    grad_input : Array or None
    grad_residual : Array
        ``grad`` masked by the activation; ``grad`` itself without one, or without ``result``.
    grad_weight, grad_bias : (C,)
    """
    x, channels_last = _laid_out(x, groups)
    plan = _plan(x.shape, groups, channels_last)
    grad = laid_out_like(grad, x)
    sums = np.zeros((2, plan.images, plan.channels))
    grad_input = empty_like(x) if needs_input else None
    y = masked = None
    if activation is not None and result is not None:
        y, masked = laid_out_like(result, x), empty_like(x)
    if x.size:
        arrays = {"gy": grad, "x": x, "y": y, "masked": masked, "gx": grad_input}
        arrays |= {"statistics": statistics, "sums": sums}
        arrays["parameters"] = plan.parameters(x.dtype, weight, bias)
        plan.run(arrays, eps, not given, activation, "from_input" if y is None else "from_result")
    roots = 1 / np.sqrt(statistics[1] + eps)
    if x.size:
        each = plan.channels * plan.images // plan.units
        roots = np.repeat(roots.reshape(plan.images, -1), each, 1)
    else:
        roots = np.zeros_like(sums[1])
    dtype = _SINGLE if x.dtype.char == "E" else x.dtype
    grad_weight = (sums[1] * roots).sum(0).astype(dtype)
    grad_bias = sums[0].sum(0).astype(dtype)
    return grad_input, grad if masked is None else masked, grad_weight, grad_bias
