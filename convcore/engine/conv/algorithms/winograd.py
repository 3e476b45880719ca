"""Winograd's method: fewer multiplications where an axis has few taps a remainder of the stride.

F(4x4, 3x3) makes 4x4 outputs of a 3x3 kernel from 36 products a channel, where the definition takes
144.  The input is cut into tiles, transformed, multiplied point by point with the transformed
weights, and transformed back; kernels/conv/winograd_1d.h has the transforms and their source.

A stride S makes S*S phases, each a correlation of stride 1 with every S-th tap (kernels/_winograd):
a 5x5 kernel of stride 2 is one of 3x3, and a 3x3 kernel one of 2x2, over four times the channels.
A dilation makes classes of tiles, each over its own elements.  winograd_tiles.py says where tiles
and taps lie in memory; this file, when the method is taken, and how much is done at a time.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np

from convcore.engine.conv.algorithms.blocks import ITEMS, MOST_PARTIALS, lines
from convcore.engine.conv.algorithms.gemm_weight_gradient import PARTIAL_BYTES
from convcore.engine.conv.algorithms.problem import (
    FORWARD,
    PARTIAL_SUMS,
    PASSES,
    TRANSFORMED_DATA,
    TRANSFORMED_WEIGHTS,
    WEIGHT_GRAD,
    Algorithm,
    PassPlan,
    Problem,
)
from convcore.engine.conv.algorithms.winograd_tiles import (
    SIZES,
    Size,
    cuts_of,
    filters_of,
    input_tiling,
    output_tiling,
    phases_of,
)
from convcore.engine.geometry import Axis
from convcore.kernels.conv._winograd import WinogradCorrelation
from convcore.kernels.conv._winograd_weight import WinogradWeightGradient
from convcore.kernels.runtime import _isa

_NAME = "winograd"
# Below, the transforms cost more than they save; and integers below it stay exact.
LEAST_CHANNELS = 16
# Columns that a tile in contiguous memory may span: conv/winograd.h has a buffer of so many.
STRIP = 72
MOST_PHASES = 4
# Transforming a filter takes about as long as this many of its products.
FILTER_COST = 400
# And reading a filter that was transformed before, as this many: with one image, 3x3 512@7 takes as
# long directly on one thread and two thirds on two (means 1.02 and 0.68), and 3x3 256@14 less than
# half this way (0.45 and 0.42):
# benchmarks/sweep.py --constant winograd.KEPT_FILTER_COST --values 160,1000 --kept --maps forward
# --layer 1,512,7,7,512,3,1,1 --layer 1,256,14,14,256,3,1,1 --threads 1 (and 2)
KEPT_FILTER_COST = 240
# Multiplications must fall by this factor, or the transforms cost more than they save.
LEAST_GAIN = 1.2
# The points of a block of tiles, and their products: some more than a 1 MiB L2 holds, for they are
# used one point after another.
BLOCK_BYTES = 1 << 20
# Channels that are made at a time; summed channels whose weights are transformed at a time.
O_BLOCK = 64
PART = 64
# With so few tiles, and transformed weights too large to be read again for each block of them, the
# weights, not the data, are transformed where they are used: 1.2 times faster on one thread on 128
# tiles (3x3 256@14; the input gradient of 5x5 of stride 2, 128-256@32), and 1.8 times slower on 392
# (3x3 256@28).  Not on sources, which read and write the sums once more each:
# benchmarks/sweep.py --constant winograd.FEW_TILES --values 0,400 --maps forward,input_grad
# --layer 8,256,14,14,256,3,1,1 --layer 8,128,32,32,256,5,2,2 --layer 8,256,28,28,256,3,1,1
# --threads 1
FEW_TILES = 160
LARGE_WEIGHTS_BYTES = 4 << 20
# Transformed weights, over the weights themselves, that are kept at a time.
MOST_WEIGHTS = 4
MOST_SCRATCH_BYTES = 8 << 20
# The weight gradient's tiles that are transformed at a time; and its output channels, where there
# are hardly more tiles than that: on two threads 1.1 times faster on 32 tiles (3x3 512@7):
# benchmarks/sweep.py --constant winograd.WIDE_O_BLOCK --values 64 --maps weight_grad
# --layer 8,512,7,7,512,3,1,1 --threads 2
SUMMED_TILES = 96
WIDE_O_BLOCK = 128


def _taps(axis: Axis) -> int:
    """Return the most taps of one remainder of the stride."""
    return -(-axis.kernel // axis.stride)


def _impossible(problem: Problem) -> str | None:
    g = problem.geometry
    if problem.dtype != np.float32:
        return f"{problem.dtype} is computed by the definition"
    if g.rank != 2:
        return f"{g.rank} spatial axes, not 2"
    if any(a.stride > 1 and a.dilation > 1 for a in g.axes):
        return "a stride and a dilation at once"
    if math.prod(a.stride for a in g.axes) > MOST_PHASES:
        return f"more than {MOST_PHASES} remainders of the stride"
    if any(a.stride > a.kernel for a in g.axes):
        return "a stride longer than the kernel"
    if not _sizes(problem):
        return "no tile has so many taps"
    if max(_span(problem.geometry.axes[1], size) for size in _sizes(problem)) > STRIP:
        return f"its taps span more than {STRIP} columns"
    if min(problem.c, problem.o) < LEAST_CHANNELS:
        return f"fewer than {LEAST_CHANNELS} channels a group"
    if g.n * g.pixels == 0 or 0 in g.input_shape:
        return "nothing to multiply"
    if problem.pass_name == FORWARD and _fill(problem) > MOST_WEIGHTS:
        return f"its transformed weights would be more than {MOST_WEIGHTS} times the weights"
    # The points of one row of tiles, and their products.
    widest = max(problem.c, problem.o) * _phase_count(problem) + O_BLOCK + _isa.lanes()
    if _isa.rows() * 36 * 4 * widest > MOST_SCRATCH_BYTES:
        return "more channels than a thread's scratch holds"
    arrays = [problem.left] + [problem.right] * (problem.pass_name == WEIGHT_GRAD)
    if not all(array.strides[1] == 1 or array.strides[4] == 1 for array in arrays):
        return "neither channels nor columns lie side by side in memory"
    if problem.pass_name != WEIGHT_GRAD and min(problem.right.strides) < 0:
        return "weights that run backwards in memory"
    return None


def _span(axis: Axis, size: Size) -> int:
    """Return the elements of an axis from a tile's first input to its last, both included."""
    return (size.outputs + size.taps - 2) * max(axis.dilation, axis.stride) + 1


def _sizes(problem: Problem) -> list[Size]:
    """Return the sizes whose taps are as many as the larger axis needs."""
    taps = max(_taps(a) for a in problem.geometry.axes)
    return [size for size in SIZES if size.taps == taps]


def _unprofitable(problem: Problem) -> str | None:
    g = problem.geometry
    size = _best_size(problem)
    done = _products(problem, size)
    cost = KEPT_FILTER_COST if problem.kept else FILTER_COST
    filters = _phase_count(problem) * g.c_out * problem.c * cost
    if LEAST_GAIN * (done + filters) > g.multiply_adds:
        return f"{size.name} would multiply {done / g.multiply_adds:.2f} times as often"
    return None


def _fill(problem: Problem) -> float:
    """Return the transformed weights of one block of output channels, over all weights.

    As if every panel were full: a few channels in a panel are filled up with zeros.
    """
    blocks = -(-problem.o // O_BLOCK)
    taps = problem.geometry.taps
    return _best_size(problem).points * _phase_count(problem) / (blocks * taps)


def _phase_count(problem: Problem) -> int:
    return math.prod(a.stride for a in problem.geometry.axes)


def _all_tiles(problem: Problem, size: Size) -> int:
    """Return the tiles of all images and classes."""
    return problem.geometry.n * math.prod(c.classes * c.tiles(size) for c in cuts_of(problem))


def _products(problem: Problem, size: Size) -> int:
    """Return the multiply-adds between the transforms."""
    pairs = problem.geometry.c_out * problem.c * _phase_count(problem)
    return _all_tiles(problem, size) * size.points * pairs


def _best_size(problem: Problem) -> Size:
    """Return the size that multiplies least; of equals the larger, which transforms less."""
    return min(reversed(_sizes(problem)), key=lambda size: _products(problem, size))


# ---- how much at a time ----


def _whole(n: int, unit: int) -> int:
    """Round up to whole units."""
    return -(-n // unit) * unit


def _correlation(problem: Problem) -> tuple[WinogradCorrelation, PassPlan]:
    g, size, w = problem.geometry, _best_size(problem), problem.right
    lanes, panel, rows = _isa.lanes(), _isa.panel(), _isa.rows()
    tiles, phases = _all_tiles(problem, size), phases_of(problem, size)
    forward = problem.pass_name == FORWARD
    c, o = (problem.c, problem.o) if forward else (problem.o, problem.c)
    sources, targets = (len(phases), 1) if forward else (1, len(phases))
    o_blocks = -(-o // O_BLOCK)
    o_block = _whole(-(-o // o_blocks), panel)
    part = min(c, PART)
    # A line more, so that the points of a tile do not all fall on the same lines of the cache.
    v_tile = _whole((sources - 1) * c + _whole(c, lanes), lanes)
    transformed = 4 * size.points * len(phases) * c * o
    large = transformed > LARGE_WEIGHTS_BYTES
    weights_first = sources == 1 and tiles <= FEW_TILES and (large or problem.kept)
    pass_blocks = targets * o_blocks
    if weights_first:
        block, items = -(-tiles // ITEMS), g.groups * targets * o_blocks
        v_point = tiles * v_tile + panel
        u_point = (c if problem.kept else part) * o_block + panel
        m_point = tiles * o_block + panel
        shared = lines(g.groups * size.points * v_point)
        m_first = 0 if problem.kept else lines(size.points * u_point)
    else:
        fit = BLOCK_BYTES // (size.points * 4 * (v_tile + o_block))
        block = _whole(max(1, min(fit, tiles // ITEMS)), rows)
        items = g.groups * -(-tiles // block)
        v_point, u_point = block * v_tile + panel, sources * c * o_block
        m_point = block * o_block + panel
        one_block = g.groups * size.points * u_point
        fit = MOST_WEIGHTS * math.prod(g.weight_shape) // one_block
        if not problem.kept:
            pass_blocks = min(pass_blocks, max(1, fit))
        shared = 0 if problem.kept else lines(pass_blocks * one_block)
        m_first = lines(size.points * v_point)
    done = _products(problem, size)
    plan = PassPlan(
        algorithm=_NAME,
        reason=_reason(problem, size, done),
        itemsize=4,
        items=items,
        scratch=m_first + lines(size.points * m_point),
        shared=shared,
        holds=TRANSFORMED_DATA if weights_first else TRANSFORMED_WEIGHTS,
        kept=g.groups * targets * o_blocks * size.points * u_point if problem.kept else 0,
        ends=True,
        adds=problem.channels_last,
        block=block,
        units="tiles",
        o_block=o_block,
        part_channels=part,
        multiply_adds=done,
    )
    job = {
        "size": size.number,
        "weights_first": weights_first,
        "groups": g.groups,
        "c": c,
        "o": o,
        "sources": sources,
        "targets": targets,
        "o_block": o_block,
        "o_blocks": o_blocks,
        "pass_blocks": pass_blocks,
        "part": part,
        "parts": -(-c // part),
        "tiles": tiles,
        "block": block,
        "blocks": -(-tiles // block),
        "w_group": problem.o * w.strides[0],
        "w_size": 1 + sum((n - 1) * s for n, s in zip(w.shape, w.strides, strict=True)),
        "v_tile": v_tile,
        "v_point": v_point,
        "u_point": u_point,
        "m_point": m_point,
        "shared": shared,
        "m_first": m_first,
        "scratch": plan.scratch,
        "items": items,
        "work": float(done),
    }
    return WinogradCorrelation(job, phases), plan


def _weight_gradient(problem: Problem) -> tuple[WinogradWeightGradient, PassPlan]:
    g, size, w = problem.geometry, _best_size(problem), problem.output
    lanes, panel = _isa.lanes(), _isa.panel()
    tiles = _all_tiles(problem, size)
    c, o = problem.c, problem.o
    phases = [
        {
            "x": input_tiling(problem, size, remainders),
            "filters": filters_of(g.axes, size, w, remainders, rotated=False)
            | {"lane": w.strides[1], "sum": 0},
        }
        for remainders in product(*(range(a.stride) for a in g.axes))
    ]
    o_block = min(o, WIDE_O_BLOCK if tiles <= FEW_TILES else O_BLOCK)
    c_block = _whole(-(-c // -(-c // O_BLOCK)), panel)
    pieces = g.groups * len(phases) * -(-o // o_block) * -(-c // c_block)
    block = min(SUMMED_TILES, tiles)
    gradient = math.prod(g.weight_shape)
    partials = max(
        1,
        min(-(-ITEMS // pieces), MOST_PARTIALS, PARTIAL_BYTES // (4 * gradient), tiles // block),
    )
    z_tile = _whole(o_block, lanes)
    # A line more, so that the points of a tile do not all fall on the same lines of the cache.
    z_point, v_point = block * z_tile + panel, block * c_block + panel
    sum_point = o_block * c_block + panel
    v_first = lines(size.points * z_point)
    sum_first = v_first + lines(size.points * v_point)
    done = _products(problem, size)
    plan = PassPlan(
        algorithm=_NAME,
        reason=_reason(problem, size, done),
        itemsize=4,
        items=pieces * partials,
        scratch=sum_first + lines(size.points * sum_point),
        shared=lines(partials * gradient) if partials > 1 else 0,
        holds=PARTIAL_SUMS,
        block=block,
        units="tiles",
        o_block=o_block,
        part_channels=c_block,
        partials=partials,
        multiply_adds=done,
    )
    job = {
        "gy": output_tiling(problem, size, problem.right),
        "size": size.number,
        "groups": g.groups,
        "c": c,
        "o": o,
        "o_block": o_block,
        "o_blocks": -(-o // o_block),
        "c_block": c_block,
        "c_blocks": -(-c // c_block),
        "tiles": tiles,
        "block": block,
        "partials": partials,
        "phases": len(phases),
        "w_o": w.strides[0],
        "z_tile": z_tile,
        "z_point": z_point,
        "v_point": v_point,
        "sum_point": sum_point,
        "v_first": v_first,
        "sum_first": sum_first,
        "shared": plan.shared,
        "scratch": plan.scratch,
        "items": plan.items,
        "work": float(done),
    }
    return WinogradWeightGradient(job, phases), plan


def _reason(problem: Problem, size: Size, done: int) -> str:
    saved = problem.geometry.multiply_adds / done
    phases = _phase_count(problem)
    where = f" on {phases} remainders of the stride" if phases > 1 else ""
    return f"{size.name}{where}: {saved:.2f} times fewer multiplications"


def _prepare(problem: Problem) -> tuple[Any, PassPlan]:
    return _weight_gradient(problem) if problem.pass_name == WEIGHT_GRAD else _correlation(problem)


WINOGRAD = Algorithm(_NAME, PASSES, _prepare, _impossible, _unprofitable, direct=False)
