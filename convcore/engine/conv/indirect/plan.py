"""Indirect convolution: products whose rows are pointers to the pixels under each tap.

No patch is copied.  In float32, for any kernel, stride and dilation: the forward pass, the input
gradient in its phases (engine/conv/stride_phases.py), and the weight gradient.  Contiguous channels
are multiplied in place; otherwise the lines that a block reads are transposed first, once for all
taps.

References
----------
M. Dukhan, The indirect convolution algorithm (2019), arXiv 1907.02129.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore.engine.conv.im2col.gemm import too_many_phases, wasteful_to_gather
from convcore.engine.conv.im2col.pointwise import POINTWISE
from convcore.engine.conv.indirect import correlation as indirect_correlation
from convcore.engine.conv.indirect import weight as indirect_weight
from convcore.engine.conv.indirect.indirection import MOST_CLASSES, too_many_pixels, too_many_taps
from convcore.engine.conv.problem import (
    FORWARD,
    INPUT_GRAD,
    PASSES,
    WEIGHT_GRAD,
    Algorithm,
    PassPlan,
    Problem,
    not_by_pixel,
)
from convcore.engine.runtime import _isa

_NAME = "indirect"
# For one tap and planes of at most this many pixels, transposing costs more than packing saves.
FEW_PIXELS = 64
# Minimum channels that each pixel is multiplied for, if planes are to be transposed.
LEAST_TRANSPOSED = 64
# For one tap and planes of this many pixels BLAS writes results in place: with at most so many
# summed channels, or half as many as the result's, it takes 0.5 to 0.96 of the time; with more, or
# in planes of 14 x 14 pixels, up to 1.7 times: benchmarks/sweep.py --threads 1 --formats contiguous
# --passes forward --constant indirect.MANY_PIXELS --values 1,1000000
# --layer 8,64,56,56,256,1,1,0,1,1, and with other channels and sizes.
MANY_PIXELS = 28 * 28
# With one tap, BLAS computes gradients of more weights than this: only gathering is saved here.
MOST_POINTWISE_WEIGHTS = 64 << 10


def _impossible(problem: Problem) -> str | None:
    g = problem.geometry
    if problem.dtype != np.float32:
        return f"{problem.dtype} is multiplied by BLAS"
    if 4 * min(problem.c, problem.o) < _isa.lanes():
        return f"few channels: vectors of {_isa.lanes()} would hold mostly zeros"
    if problem.pass_name == INPUT_GRAD:
        last = g.axes[-1]
        if min(last.stride, last.size) > MOST_CLASSES:
            return f"a stride of {last.stride}"
        if reason := too_many_phases(g):
            return reason
    way = indirect_weight if problem.pass_name == WEIGHT_GRAD else indirect_correlation
    return too_many_taps(g.taps) or too_many_pixels(way.most_seen(problem))


def _unprofitable(problem: Problem) -> str | None:
    g = problem.geometry
    if reason := wasteful_to_gather(problem):
        return reason
    planes = problem.left.strides[1] != 1
    if planes and problem.pass_name != WEIGHT_GRAD and not POINTWISE.impossible(problem):
        if min(problem.c, problem.o) < LEAST_TRANSPOSED:
            return "a pointwise product of few planes: turning them gains nothing"
        few = max(LEAST_TRANSPOSED, problem.output_channels // 2)
        if problem.reduction_channels <= few and g.pixels >= MANY_PIXELS:
            return "a pointwise product of few summed planes: turning many more takes longer"
    if planes and problem.pass_name == FORWARD and g.taps == 1 and g.n * g.pixels <= FEW_PIXELS:
        return f"one tap of {g.n * g.pixels} pixels: turning them gains nothing"
    if problem.pass_name == WEIGHT_GRAD and g.taps == 1:
        if planes:
            return "a pointwise product of planes: turning them gains nothing"
        if problem.c * problem.o > MOST_POINTWISE_WEIGHTS:
            return "a large pointwise product: BLAS is as fast"
    return None


def _prepare(problem: Problem) -> tuple[Any, PassPlan]:
    if problem.pass_name == WEIGHT_GRAD:
        return indirect_weight.weight_gradient(problem, _NAME)
    return indirect_correlation.correlation(problem, _NAME)


INDIRECT = Algorithm(_NAME, PASSES, _prepare, _impossible, _unprofitable, not_narrow=not_by_pixel)
