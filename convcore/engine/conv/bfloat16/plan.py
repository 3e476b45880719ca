"""Convolution of float32 arrays with bfloat16 products and float32 sums (opt-in).

Both factors of each product are rounded to bfloat16 while pixels and weights are packed.  Products
are exact and sums are float32, so the error is about 2**-8 of the largest terms.  Pixels are read
as in indirect/plan.py.  The order of the additions is fixed by the shapes (bfloat16.c): the bits
are the same on all instruction sets.  Without an instruction that multiplies bfloat16 pairs, the
same products are computed in float32, which is no faster than float32 convolution.

Chosen where ``fp32_precision`` is "bf16" (`convcore.backends.conv`), or where it is forced.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore.engine.conv.blocks import MOST_WEIGHTS
from convcore.engine.conv.im2col.gemm import too_many_phases
from convcore.engine.conv.indirect import correlation as indirect_correlation
from convcore.engine.conv.indirect import weight as indirect_weight
from convcore.engine.conv.indirect.indirection import MOST_CLASSES, too_many_pixels, too_many_taps
from convcore.engine.conv.problem import (
    INPUT_GRAD,
    PASSES,
    WEIGHT_GRAD,
    Algorithm,
    PassPlan,
    Problem,
    not_by_pixel,
)
from convcore.engine.conv.winograd.plan import WINOGRAD
from convcore.engine.runtime import _isa

_NAME = "bfloat16"
# Blocks of terms are padded with zeros.  With fewer channels than this the padding costs more than
# bfloat16 gains, and with fewer than LEAST_SUMMED the packed weights need too much memory.
# Try other values on a CPU with the instruction: benchmarks/sweep.py --precision bf16
# --constant bfloat16.FEWEST_CHANNELS --values 8,48 --layer 8,24,56,56,144,1,1,0,1,1
FEWEST_CHANNELS = 24
# Winograd is slower for this few output channels (half a panel) in channels_last: with 32 of them
# bfloat16 pairs took 0.83 to 0.85 of its time, but 1.04 to 1.14 in the other memory format (one
# thread of an AMD EPYC, Zen 5).  To try: benchmarks/sweep.py --precision bf16 --threads 1
# --constant bfloat16.FEW_OUTPUTS --values 0 --layer 2,32,256,256,32,3,1,1
FEW_OUTPUTS = 32
LEAST_SUMMED = _isa.BFLOAT16_TERMS // MOST_WEIGHTS


def _impossible(problem: Problem) -> str | None:
    g = problem.geometry
    if problem.dtype != np.float32:
        return f"{problem.dtype} is multiplied as it is"
    if problem.pass_name == INPUT_GRAD:
        last = g.axes[-1]
        if min(last.stride, last.size) > MOST_CLASSES:
            return f"a stride of {last.stride}"
        if reason := too_many_phases(g):
            return reason
    if problem.pass_name != WEIGHT_GRAD and problem.reduction_channels < LEAST_SUMMED:
        return f"{problem.reduction_channels} channels: weights would be packed with mostly zeros"
    way = indirect_weight if problem.pass_name == WEIGHT_GRAD else indirect_correlation
    return too_many_taps(g.taps) or too_many_pixels(way.most_seen(problem, bfloat16=True))


def _unprofitable(problem: Problem) -> str | None:
    if _isa.bfloat16_is_emulated():
        return f"{_isa.name()} multiplies no pairs: float32 is as fast"
    if min(problem.c, problem.o) < FEWEST_CHANNELS:
        return "few channels: blocks of terms would hold mostly zeros"
    few_outputs = problem.channels_last and problem.output_channels <= FEW_OUTPUTS
    if few_outputs and problem.pass_name != WEIGHT_GRAD:
        return None
    if not (WINOGRAD.impossible(problem) or WINOGRAD.unprofitable(problem)):
        return "Winograd's method in float32 is faster"
    return None


def _prepare(problem: Problem) -> tuple[Any, PassPlan]:
    if problem.pass_name == WEIGHT_GRAD:
        return indirect_weight.weight_gradient(problem, _NAME, bfloat16=True)
    return indirect_correlation.correlation(problem, _NAME, bfloat16=True)


BFLOAT16 = Algorithm(
    *(_NAME, PASSES, _prepare, _impossible, _unprofitable),
    direct=False,
    rounds=True,
    not_narrow=not_by_pixel,
)
