"""Depthwise: each channel has a kernel of its own, and no gemm is worth its name."""

from __future__ import annotations

from typing import Any

from convcore.engine.algorithms.blocks import ITEMS, MOST_PARTIALS, lines
from convcore.engine.algorithms.correlation import correlation, too_many_phases
from convcore.engine.algorithms.problem import (
    INPUT_GRAD,
    MAPS,
    WEIGHT_GRAD,
    Algorithm,
    MapPlan,
    Problem,
)
from convcore.engine.fields import forward_lines, output_lines, window
from convcore.kernels._depthwise import MOST_TAPS, WIDTH, DepthwiseWeight

_NAME = "depthwise"
_REASON = "one channel a group: multiplied channel by channel, without a gemm"


def _impossible(problem: Problem) -> str | None:
    g = problem.geometry
    if not g.groups == g.c_in == g.c_out > 1:
        return "more than one channel a group" if g.c_in > 1 else "only one channel"
    if g.taps > MOST_TAPS:
        return f"{g.taps} taps, more than {MOST_TAPS}"
    if problem.map == WEIGHT_GRAD:
        return None
    if not problem.channels_last or problem.left.strides[1] != 1:
        return "its channels do not lie side by side in memory"
    return too_many_phases(g) if problem.map == INPUT_GRAD else None


def _prepare(problem: Problem) -> tuple[Any, MapPlan]:
    if problem.map == WEIGHT_GRAD:
        return _weight_gradient(problem)
    return correlation(problem, _NAME, _REASON, by_channel=True)


def _weight_gradient(problem: Problem) -> tuple[DepthwiseWeight, MapPlan]:
    """Return the kernel and its plan, summed in as many runs as there must be items."""
    g = problem.geometry
    chunks = -(-g.c_out // WIDTH)
    partials = max(1, min(-(-ITEMS // chunks), MOST_PARTIALS, g.n * g.pixels))
    plan = MapPlan(
        algorithm=_NAME,
        reason=_REASON,
        itemsize=problem.itemsize,
        items=chunks * partials,
        scratch=0,
        shared=lines(partials * g.c_out * g.taps),
        block=-(-g.n * g.pixels // partials),
        o_block=min(g.c_out, WIDTH),
        part_taps=g.taps,
        part_channels=1,
        partials=partials,
        multiply_adds=g.multiply_adds,
    )
    fields = {
        "x": window(forward_lines(g), problem.left),
        "gy": window(output_lines(g), problem.right),
        "n": g.n,
        "channels": g.c_out,
        "partials": plan.partials,
        "items": plan.items,
        "work": float(g.multiply_adds),
    }
    return DepthwiseWeight(problem.dtype.char, fields), plan


DEPTHWISE = Algorithm(_NAME, MAPS, _prepare, _impossible)
