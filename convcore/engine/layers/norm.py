"""Normalisation by means and variances: of each channel of a batch, or of groups within an image.

y = (x - mean) / sqrt(variance + eps) * weight + bias, where mean and variance are of the elements
of a channel over the whole batch (batch norm), or of a group of channels of one image (group norm;
with a channel a group, instance norm).  A residual may be added and the sum clamped in the same
pass, and so may all of that be differentiated.

Sums are made in float64, and variances about an element of what is summed, so that neither a large
mean nor a large array costs digits: see kernels/layers/norm.h for the bound.

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

from convcore.engine.layers.elementwise import empty_like, laid_out_like
from convcore.engine.runtime import layout, memory
from convcore.kernels.layers import _norm_nchw, _norm_nhwc
from convcore.kernels.layers._norm_nchw import ACTIVATIONS

Array = np.ndarray[Any, Any]

# Of items on which threads work; chosen by hand.
_LEAST_ITEM = 1 << 15
_MOST_RUNS = 64

# Elements of a row that are worth a leaf's call; fewer channels are repeated.
_ROW = 256

# Multiply-adds that an element takes as long as, forward and backward.
_WORK = 8.0

# [low, high] of the activations that may follow.
CLAMPS = {"relu": (0.0, math.inf), "relu6": (0.0, 6.0)}


class _Plan(NamedTuple):
    """How an array is walked: the kernels' module, its job, and the sizes of its small arrays."""

    by_pixels: bool
    job: dict[str, Any]
    units: int
    images: int
    channels: int
    repeat: int  # how often a weight stands in the terms, for each image
    workspace: int  # bytes

    @property
    def lines(self) -> int:
        """How many weights the terms hold."""
        return self.images * self.repeat * self.channels


@lru_cache(maxsize=1024)
def _plan(shape: tuple[int, ...], groups: int | None, channels_last: bool) -> _Plan:
    """Return the plan for an (N, C, *sizes) array; ``groups`` is None for a batch norm."""
    n, channels = shape[:2]
    pixels = math.prod(shape[2:])
    work = _WORK * n * channels * pixels
    if channels_last:
        images, units = (1, channels) if groups is None else (n, n * groups)
        pixels = n * pixels // images
        return _pixels_plan(images, pixels, channels, units, work)
    if groups is None:
        runs, units, step, run_step, lines = n, channels, pixels, channels * pixels, 1
    else:
        runs = lines = channels // groups
        units, step, run_step = n * groups, runs * pixels, pixels
    job = {
        "units": units, "runs": runs, "length": pixels, "unit_step": step, "run_step": run_step,
        "lines": lines, "block": max(1, _LEAST_ITEM // max(1, runs * pixels)), "work": work,
    }  # fmt: skip
    return _Plan(False, job, units, 1 if groups is None else n, channels, 1, 0)


def _pixels_plan(images: int, pixels: int, channels: int, units: int, work: float) -> _Plan:
    # Each place of a row has sums of its own to add up: no more of them than rows, about.
    repeat = max(1, min(_ROW // channels, math.isqrt(4 * pixels // channels)))
    rows, width = pixels // repeat, repeat * channels
    block = max(8, _LEAST_ITEM // width, math.ceil(rows * images / _MOST_RUNS))
    runs = max(1, math.ceil(rows / block))
    job = {
        "images": images, "pixels": pixels, "channels": channels, "groups": units // images,
        "repeat": repeat, "runs": runs, "block": block, "work": work,
    }  # fmt: skip
    return _Plan(True, job, units, images, channels, repeat, images * (2 * runs + 1) * width * 8)


def _is_channels_last(x: Array, groups: int | None) -> bool | None:
    """Return whether a dense array's channels run fastest, or None where it has gaps."""
    if x.flags.c_contiguous:
        return groups is None and math.prod(x.shape[2:]) == 1
    if x.transpose(0, *range(2, x.ndim), 1).flags.c_contiguous:
        return True
    return None


def _laid_out(x: Array, groups: int | None) -> tuple[Array, bool]:
    """Return the array, copied where it has gaps, and whether its channels run fastest."""
    channels_last = _is_channels_last(x, groups) if x.flags.aligned else None
    if channels_last is not None:
        return x, channels_last
    copy = layout.empty(x.shape, x.dtype, layout.is_channels_last(x.shape, x.strides))
    copy[...] = x
    return copy, bool(_is_channels_last(copy, groups))


def _terms(plan: _Plan, dtype: np.dtype, weight: Array | None, bias: Array | None) -> Array:
    """Return the kernels' terms, with weight and bias wherever they stand."""
    terms = np.empty((5, plan.images * plan.repeat, plan.channels), dtype)
    terms[1] = 1 if weight is None else weight
    terms[2] = 0 if bias is None else bias
    return terms


def _job(
    plan: _Plan, eps: float, moments: bool, activation: str | None, how: str = "from_result"
) -> dict[str, Any]:
    low, high = CLAMPS[activation] if activation else (0.0, 0.0)
    kind = ACTIVATIONS[how if activation else "linear"]
    return plan.job | {
        "eps": eps, "moments": moments, "low": low, "high": high, "activation": kind,
    }  # fmt: skip


def forward(
    x: Array,
    weight: Array | None,
    bias: Array | None,
    eps: float,
    groups: int | None = None,
    statistics: Array | None = None,
    residual: Array | None = None,
    activation: str | None = None,
) -> tuple[Array, Array]:
    """Normalise, add a residual and clamp.

    Parameters
    ----------
    x : (N, C, *sizes), float32 or float64
    weight, bias : (C,), the same dtype, or None for ones and zeros
    eps : float
        Added to variances.
    groups : int, optional
        Groups of channels of an image that are normalised by themselves; None: each channel is,
        over the whole batch.
    statistics : (2, C) float64, optional
        Means and variances to take instead of x's own.
    residual : Array like x, optional
    activation : 'relu', 'relu6' or None

    Returns
    -------
    y : Array
        Of x's shape, dtype and memory format.
    statistics : (2, C) or (2, N * groups), float64
        Means and variances, n and not n - 1 being what the squares are divided by.

    Notes
    -----
    A contiguous batch norm reads x from memory once, where a channel fits in cache; a channels_last
    one twice.  Parallel over channels, or over runs of pixels fixed by the shape: the bits do not
    depend on the number of threads.
    """
    x, channels_last = _laid_out(x, groups)
    plan = _plan(x.shape, groups, channels_last)
    given = statistics is not None
    if statistics is None:
        statistics = np.zeros((2, plan.units))
    y = empty_like(x)
    if residual is not None:
        residual = laid_out_like(residual, x)
    job = _job(plan, eps, not given, activation)
    terms = _terms(plan, x.dtype, weight, bias)
    if x.size == 0:
        return y, statistics
    if plan.by_pixels:
        scratch = memory.take(plan.workspace)
        _norm_nhwc.forward(job, x, residual, y, terms, statistics, scratch)
        memory.give(scratch)
    else:
        _norm_nchw.forward(job, x, residual, y, terms, statistics)
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
    """Return the gradients of `forward`.

    Parameters
    ----------
    grad : Array like x
        The gradient of y.
    x, weight, bias, eps, groups, activation
        As they went forward.
    statistics : Array
        What `forward` returned.
    given : bool
        Whether the statistics were given, and so do not depend on x.
    result : Array like x, optional
        y.  Needed where a residual was added and an activation followed; otherwise the activation
        is told from x, which is read anyway.
    needs_input : bool
        Whether the gradient of x is wanted.

    Returns
    -------
    grad_input : Array or None
    grad_residual : Array
        What the activation leaves of ``grad``; ``grad`` itself without one, or without ``result``.
    grad_weight, grad_bias : (C,)
    """
    x, channels_last = _laid_out(x, groups)
    plan = _plan(x.shape, groups, channels_last)
    grad = laid_out_like(grad, x)
    by_result = activation is not None and result is not None
    job = _job(plan, eps, not given, activation, "from_result" if by_result else "from_input")
    terms = _terms(plan, x.dtype, weight, bias)
    sums = np.empty((2, plan.images, plan.channels))
    grad_input = empty_like(x) if needs_input else None
    kept = empty_like(x) if by_result else None
    y = laid_out_like(result, x) if by_result and result is not None else None
    if x.size == 0:
        sums[...] = 0
    elif plan.by_pixels:
        scratch = memory.take(plan.workspace)
        _norm_nhwc.backward(job, grad, x, y, kept, grad_input, terms, statistics, sums, scratch)
        memory.give(scratch)
    else:
        _norm_nchw.backward(job, grad, x, y, kept, grad_input, terms, statistics, sums)
    roots = 1 / np.sqrt(statistics[1] + eps)
    roots = np.repeat(roots.reshape(plan.images, -1), plan.channels * plan.images // plan.units, 1)
    grad_weight = (sums[1] * roots).sum(0).astype(x.dtype)
    return grad_input, grad if kept is None else kept, grad_weight, sums[0].sum(0).astype(x.dtype)
