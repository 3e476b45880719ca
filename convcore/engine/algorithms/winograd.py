"""Winograd's method: 3x3 kernels of stride 1, in a quarter to a half of the multiplications.

F(4x4, 3x3) makes 4x4 outputs from 36 products a channel, F(2x2, 3x3) 2x2 from 16; the definition
takes 144 and 36.  The input is cut into tiles, transformed, multiplied point by point with the
transformed weights, and transformed back; kernels/leaves/winograd_lines.h has the transforms and
their source.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from convcore.engine.algorithms.blocks import lines
from convcore.engine.algorithms.problem import (
    FORWARD,
    INPUT_GRAD,
    MAPS,
    WEIGHT_GRAD,
    Algorithm,
    MapPlan,
    Problem,
)
from convcore.engine.geometry import Axis
from convcore.engine.layout import Layout
from convcore.kernels import _isa
from convcore.kernels._winograd import WinogradCorrelation
from convcore.kernels._winograd_weight import WinogradWeightGradient

Fields = dict[str, Any]

_NAME = "winograd"
# Below, the transforms cost more than they save; and integers below it stay exact.
LEAST_CHANNELS = 16


@dataclass(frozen=True, slots=True)
class Size:
    """F(outputs x outputs, 3x3): which of the kernels' transforms, outputs and products a tile."""

    index: int
    outputs: int
    points: int

    def tiles(self, axis: Axis, count: int) -> int:
        """Return the tiles of one class of an axis with `count` outputs in all."""
        return -(-count // (axis.dilation * self.outputs))


SIZES = (Size(0, 2, 16), Size(1, 4, 36))


def _impossible(problem: Problem) -> str | None:
    g = problem.geometry
    if problem.dtype != np.float32:
        return f"{problem.dtype} is computed by the definition"
    if g.rank != 2 or any(a.kernel != 3 or a.stride != 1 for a in g.axes):
        return "not a 3x3 kernel of stride 1"
    if min(problem.c, problem.o) < LEAST_CHANNELS:
        return f"fewer than {LEAST_CHANNELS} channels a group"
    arrays = [problem.left] + [problem.right] * (problem.map == WEIGHT_GRAD)
    if not all(array.strides[1] == 1 or array.strides[4] == 1 for array in arrays):
        return "neither channels nor columns lie side by side in memory"
    return None


def _unprofitable(problem: Problem) -> str | None:
    size = best_size(problem)
    done = all_tiles(problem, size) * size.points + 400
    if 1.2 * done > _outputs(problem) * 9:
        return f"{done * problem.c * problem.o} products, hardly fewer than the definition's"
    return None


def _counts(problem: Problem) -> list[int]:
    """Return the elements of each axis that are made, or summed over: outputs, or gx's."""
    axes = problem.geometry.axes
    return [a.size if problem.map == INPUT_GRAD else a.out for a in axes]


def _outputs(problem: Problem) -> int:
    return problem.geometry.n * math.prod(_counts(problem))


def all_tiles(problem: Problem, size: Size) -> int:
    """Return the tiles of all images and classes."""
    g = problem.geometry
    return g.n * math.prod(
        min(a.dilation, count) * size.tiles(a, count)
        for a, count in zip(g.axes, _counts(problem), strict=True)
    )


def best_size(problem: Problem) -> Size:
    """Return the size that multiplies least; of equals the larger, which transforms less."""
    return min(reversed(SIZES), key=lambda size: all_tiles(problem, size) * size.points)


def tiling(
    problem: Problem, size: Size, array: Layout, firsts: list[int], extents: list[int]
) -> Fields:
    """Return the fields of a Tiling of an array: tiles begin at `firsts`, within `extents`."""
    axes, counts = problem.geometry.axes, _counts(problem)
    return {
        "image": array.strides[0],
        "channel": array.strides[1],
        "line": list(array.strides[3:]),
        "size": extents,
        "first": firsts,
        "step": [a.dilation for a in axes],
        "advance": [a.dilation * size.outputs for a in axes],
        "class_step": [1, 1],
        "classes": [min(a.dilation, n) for a, n in zip(axes, counts, strict=True)],
        "tiles": [size.tiles(a, n) for a, n in zip(axes, counts, strict=True)],
    }


def _data_tiling(problem: Problem, size: Size) -> Fields:
    """Return the tiling of what is transformed: the input, or grad_output around its pads."""
    axes = problem.geometry.axes
    if problem.map == INPUT_GRAD:
        firsts = [a.before - a.dilation * (a.kernel - 1) for a in axes]
        return tiling(problem, size, problem.left, firsts, [a.out for a in axes])
    return tiling(problem, size, problem.left, [-a.before for a in axes], [a.size for a in axes])


def _weights(problem: Problem) -> Fields:
    """Return where the correlation's weights are: rotated, and made of o, for the input gradient."""
    w, g = problem.right, problem.geometry
    s_o, s_c, _, s_row, s_column = w.strides
    fields = {
        "w_group": problem.o * s_o,
        "w_size": 1 + sum((n - 1) * s for n, s in zip(w.shape, w.strides, strict=True)),
    }
    if problem.map == FORWARD:
        return fields | {
            "c": problem.c,
            "o": problem.o,
            "w_o": s_o,
            "w_c": s_c,
            "w_row": s_row,
            "w_column": s_column,
            "w_first": 0,
        }
    return fields | {
        "c": problem.o,
        "o": problem.c,
        "w_o": s_c,
        "w_c": s_o,
        "w_row": -s_row,
        "w_column": -s_column,
        "w_first": 2 * (s_row + s_column),
    }


import os

BUDGET = int(os.environ.get("WB", 1 << 20))
OBLOCK = int(os.environ.get("WO", 64))
FEW = int(os.environ.get("WF", 64))
PART = int(os.environ.get("WP", 64))
ITEMS = 8


def _up(n: int, unit: int) -> int:
    return -(-n // unit) * unit


WCB=int(os.environ.get("WCB",64)); WOB=int(os.environ.get("WOB",64)); WT=int(os.environ.get("WT",48))
def _weight_gradient(problem):
    g, size = problem.geometry, best_size(problem)
    lanes, panel = _isa.lanes(), _isa.panel()
    tiles = all_tiles(problem, size)
    c, o = problem.c, problem.o
    c_block = _up(min(c, WCB), panel)
    o_block = min(o, WOB)
    pieces = g.groups * -(-o // o_block) * -(-c // c_block)
    block = min(WT, tiles)
    runs = -(-tiles // block)
    size_bytes = 4 * g.c_out * c * 9
    partials = max(1, min(-(-ITEMS // pieces), 16, (32 << 20) // size_bytes, runs))
    z_tile = _up(o_block, lanes)
    z_point = block * z_tile + lanes
    v_point = block * c_block + lanes
    sum_point = o_block * c_block + lanes
    v_first = lines(size.points * z_point)
    sum_first = v_first + lines(size.points * v_point)
    scratch = sum_first + lines(size.points * sum_point)
    shared = lines(partials * g.c_out * c * 9) if partials > 1 else 0
    done = tiles * size.points * g.groups * c * o
    w_o, w_c, _, w_row, w_column = problem.output.strides
    job = {
        "x": _data_tiling(problem, size),
        "gy": tiling(problem, size, problem.right, [0, 0], _counts(problem)),
        "size": size.index, "groups": g.groups, "c": c, "o": o, "c_block": c_block, "c_blocks": -(-c // c_block),
        "o_block": o_block, "o_blocks": -(-o // o_block), "tiles": tiles, "block": block, "partials": partials,
        "w_o": w_o, "w_c": w_c, "w_row": w_row, "w_column": w_column, "z_tile": z_tile, "v_point": v_point, "z_point": z_point,
        "sum_point": sum_point, "v_first": v_first, "sum_first": sum_first, "shared": shared, "scratch": scratch,
        "items": pieces * partials, "work": float(done),
    }
    plan = MapPlan(algorithm=_NAME, reason="", itemsize=4, items=pieces * partials, scratch=scratch, shared=shared, block=block, o_block=o_block, partials=partials, multiply_adds=done)
    return WinogradWeightGradient(job), plan


def _prepare(problem: Problem) -> tuple[Any, MapPlan]:
    if problem.map == WEIGHT_GRAD:
        return _weight_gradient(problem)
    g, size = problem.geometry, best_size(problem)
    counts, lanes, panel = _counts(problem), _isa.lanes(), _isa.panel()
    tiles, w = all_tiles(problem, size), _weights(problem)
    c, o = w["c"], w["o"]
    o_block = _up(min(o, OBLOCK), panel)
    o_blocks = -(-o // o_block)
    v_tile = _up(c, lanes)
    few = tiles <= FEW
    if few:
        block = max(1, -(-tiles // ITEMS))
        part = min(c, PART)
        v_point = tiles * v_tile + lanes
        u_point = part * o_block + lanes
        m_point = tiles * o_block + lanes
        shared = lines(g.groups * size.points * v_point)
        m_first = lines(size.points * u_point)
        items = g.groups * o_blocks
    else:
        fit = BUDGET // (size.points * 4 * (v_tile + o_block))
        block = max(6, min(fit, -(-tiles // ITEMS)) // 6 * 6)
        part = min(c, PART)
        v_point = block * v_tile + lanes
        u_point = c * o_block + lanes
        m_point = block * o_block + lanes
        shared = lines(g.groups * o_blocks * size.points * u_point)
        m_first = lines(size.points * v_point)
        items = g.groups * -(-tiles // block)
    scratch = m_first + lines(size.points * m_point)
    done = tiles * size.points * g.groups * c * o
    job = w | {
        "x": _data_tiling(problem, size),
        "y": tiling(problem, size, problem.output, [0, 0], counts),
        "size": size.index,
        "weights_first": few,
        "groups": g.groups,
        "o_block": o_block,
        "o_blocks": o_blocks,
        "part": part,
        "parts": -(-c // part),
        "tiles": tiles,
        "block": block,
        "blocks": -(-tiles // block),
        "v_tile": v_tile,
        "v_point": v_point,
        "u_point": u_point,
        "m_point": m_point,
        "shared": shared,
        "m_first": m_first,
        "scratch": scratch,
        "items": items,
        "work": float(done),
    }
    plan = MapPlan(
        algorithm=_NAME,
        reason=f"F({size.outputs}x{size.outputs}, 3x3): {done} multiplications for {g.multiply_adds}",
        itemsize=4,
        items=items,
        scratch=scratch,
        shared=shared,
        block=block,
        o_block=o_block,
        part_channels=part,
        multiply_adds=done,
    )
    return WinogradCorrelation(job), plan


WINOGRAD = Algorithm(
    _NAME, MAPS, _prepare, _impossible, _unprofitable, direct=False
)
