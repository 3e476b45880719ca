"""Winograd convolution F(m x m, r x r): fewer multiplications where an axis has few taps.

F(4x4, 3x3) computes 4x4 outputs of a 3x3 kernel with 36 products per channel, where the definition
needs 144.  The input is cut into tiles, transformed, multiplied point by point with the transformed
weights, and transformed back; winograd_1d.h has the transforms and their source.

A stride S creates S*S phases, each a correlation of stride 1 with every S-th tap (_winograd.pyx): a
5x5 kernel of stride 2 becomes 3x3 kernels, and a 3x3 kernel 2x2 ones, over four times the channels.
A dilation creates residues of tiles, each over its own elements.  tiles.py computes the memory
offsets of tiles and taps; this file decides when the method is used, and the block sizes.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np

from convcore.engine.conv.blocks import ITEMS, MOST_WEIGHTS, lines, partials, share, up
from convcore.engine.conv.problem import (
    FORWARD,
    PARTIAL_SUMS,
    PASSES,
    TRANSFORMED_DATA,
    TRANSFORMED_WEIGHTS,
    WEIGHT_GRAD,
    Algorithm,
    PassPlan,
    Problem,
    not_by_pixel,
)
from convcore.engine.conv.struct_fields import Fields
from convcore.engine.conv.winograd._winograd import WinogradCorrelation
from convcore.engine.conv.winograd._winograd_weight import WinogradWeightGradient
from convcore.engine.conv.winograd.tiles import (
    SIZES,
    Size,
    cuts_of,
    filters_of,
    input_tiling,
    output_tiling,
    phases_of,
)
from convcore.engine.geometry import Axis
from convcore.engine.runtime import _isa

_NAME = "winograd"
# Below, the transforms cost more than they save; and small integers stay exact.
LEAST_CHANNELS = 16
# The same for several groups: with 16 channels, passes over 14 x 14 pixels take 1.3 to 2 times as
# long as indirect's; over 56 x 56 equally long.
LEAST_GROUP_CHANNELS = 32
MOST_PHASES = 4
# Products per filter that take about as long as transforming the filter.
FILTER_COST = 400
# Products that take as long as reading a transformed filter: with one image, 3x3 512@7 takes as
# long directly on one thread and two thirds on two (means 1.02 and 0.68), and 3x3 256@14 less than
# half this way (0.45 and 0.42):
# benchmarks/sweep.py --constant winograd.PREPACKED_FILTER_COST --values 160,1000 --prepacked
# --passes forward --layer 1,512,7,7,512,3,1,1 --layer 1,256,14,14,256,3,1,1 --threads 1 (and 2)
PREPACKED_FILTER_COST = 240
# Minimum reduction factor of multiplications; below it the transforms cost more than they save.
LEAST_GAIN = 1.2
# Bytes of a block of tiles' points and their products: more than a 1 MiB L2 holds, because they are
# used one point after another.
BLOCK_BYTES = 1 << 20
# Output channels computed at a time; summed channels whose weights are transformed at a time.
O_BLOCK = 64
PART = 64
# With at most this many tiles, and transformed weights too large to be read again for each block of
# tiles, the weights, not the data, are transformed in the items: 1.2 times faster on one thread on
# 128 tiles (3x3 256@14; input gradient of 5x5, stride 2, 128-256@32), 1.8 times slower on 392 (3x3
# 256@28).  Not with several sources, which read and write the sums once more each:
# benchmarks/sweep.py --constant winograd.FEW_TILES --values 0,400 --passes forward,input_grad
# --layer 8,256,14,14,256,3,1,1 --layer 8,128,32,32,256,5,2,2 --layer 8,256,28,28,256,3,1,1
# --threads 1
FEW_TILES = 160
LARGE_WEIGHTS_BYTES = 4 << 20
MOST_SCRATCH_BYTES = 8 << 20
# Prepacked weights take four times the weights' bytes.  Where a call reads each once (few tiles),
# larger ones than this are not cached but transformed in the items: benchmarks/inference_memory.py
# VGG-16 ResNet-18.  Caching all is 1.07 times faster in the mean of four such layers on one thread;
# with 4 MiB two layers of 256 channels take 1.28 times as long:
# benchmarks/sweep.py --busy --constant winograd.MOST_PREPACKED_BYTES --values 1000000000,4194304
# --passes forward --formats channels_last --prepacked --threads 1 --layer 1,512,28,28,512,3,1,1
# --layer 1,512,14,14,512,3,1,1 --layer 4,512,14,14,512,3,1,1 --layer 8,512,7,7,512,3,1,1
# --layer 1,256,14,14,256,3,1,1 --layer 8,256,14,14,256,3,1,1
MOST_PREPACKED_BYTES = 16 << 20
# Tiles of the weight gradient transformed at a time; and its output channels per block, where there
# are hardly more tiles than that: on two threads 1.1 times faster on 32 tiles (3x3 512@7):
# benchmarks/sweep.py --constant winograd.WIDE_O_BLOCK --values 64 --passes weight_grad
# --layer 8,512,7,7,512,3,1,1 --threads 2
SUMMED_TILES = 96
WIDE_O_BLOCK = 128


def _taps(axis: Axis) -> int:
    """Return the maximum number of taps with the same remainder modulo the stride."""
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
    if max(_span(problem.geometry.axes[1], size) for size in _sizes(problem)) > _isa.STRIP:
        return f"its taps span more than {_isa.STRIP} columns"
    if min(problem.c, problem.o) < LEAST_CHANNELS:
        return f"fewer than {LEAST_CHANNELS} channels a group"
    if g.n * g.pixels == 0 or 0 in g.input_shape:
        return "nothing to multiply"
    if problem.pass_name == FORWARD and _fill(problem) > MOST_WEIGHTS:
        return f"its transformed weights would be more than {MOST_WEIGHTS} times the weights"
    # Points of one row of tiles, and their products.
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
    """Return the span of an axis from a tile's first input to its last, both included."""
    return (size.outputs + size.taps - 2) * max(axis.dilation, axis.stride) + 1


def _sizes(problem: Problem) -> list[Size]:
    """Return the sizes with as many taps as the larger axis needs."""
    taps = max(_taps(a) for a in problem.geometry.axes)
    return [size for size in SIZES if size.taps == taps]


def _unprofitable(problem: Problem) -> str | None:
    g = problem.geometry
    if g.groups > 1 and min(problem.c, problem.o) < LEAST_GROUP_CHANNELS:
        return f"fewer than {LEAST_GROUP_CHANNELS} channels a group: transforms cost what they save"
    size = _best_size(problem)
    done = _products(problem, size)
    cost = PREPACKED_FILTER_COST if _keeps_weights(problem, size) else FILTER_COST
    filters = _phase_count(problem) * g.c_out * problem.c * cost
    if LEAST_GAIN * (done + filters) > g.multiply_adds:
        return f"{size.name} would multiply {done / g.multiply_adds:.2f} times as often"
    return None


def _fill(problem: Problem) -> float:
    """Return the ratio of one output-channel block's transformed weights to all weights.

    Assumes full panels: a panel with few channels is padded with zeros.
    """
    blocks = -(-problem.o // O_BLOCK)
    taps = problem.geometry.taps
    return _best_size(problem).points * _phase_count(problem) / (blocks * taps)


def _phase_count(problem: Problem) -> int:
    return math.prod(a.stride for a in problem.geometry.axes)


def _all_tiles(problem: Problem, size: Size) -> int:
    """Return the number of tiles of all images and residues."""
    return problem.geometry.n * math.prod(c.residues * c.tiles(size) for c in cuts_of(problem))


def _products(problem: Problem, size: Size) -> int:
    """Return the multiply-adds of the matrix products between the transforms."""
    pairs = problem.geometry.c_out * problem.c * _phase_count(problem)
    return _all_tiles(problem, size) * size.points * pairs


def _best_size(problem: Problem) -> Size:
    """Return the size with the fewest products; on ties the larger, which transforms less."""
    return min(reversed(_sizes(problem)), key=lambda size: _products(problem, size))


def _transformed_bytes(problem: Problem, size: Size) -> int:
    """Return the bytes of one group's transformed weights."""
    return problem.itemsize * size.points * _phase_count(problem) * problem.c * problem.o


def _has_few_tiles(problem: Problem, size: Size) -> bool:
    """Return whether there are few enough tiles to transform the weights in the work items."""
    one_source = problem.pass_name != FORWARD or _phase_count(problem) == 1
    return one_source and _all_tiles(problem, size) <= FEW_TILES


def _keeps_weights(problem: Problem, size: Size) -> bool:
    """Return whether the caller caches the transformed weights from call to call."""
    once = _has_few_tiles(problem, size)
    large = _transformed_bytes(problem, size) > MOST_PREPACKED_BYTES
    return problem.prepacked and not (once and large)


# ---- block sizes ----


def _correlation(problem: Problem) -> tuple[WinogradCorrelation, PassPlan]:
    size, w = _best_size(problem), problem.right
    problem = problem._replace(prepacked=_keeps_weights(problem, size))
    phases = phases_of(problem, size)
    cut = _weights_first(problem, size) or _tiles_first(problem, size)
    c, o_block, done = problem.reduction_channels, cut["o_block"], _products(problem, size)
    plan = PassPlan(
        algorithm=_NAME,
        reason=_reason(problem, size, done),
        itemsize=4,
        items=cut["items"],
        scratch=cut["m_first"] + lines(size.points * cut["m_point"]),
        shared=cut["shared"],
        shared_contents=TRANSFORMED_DATA if cut["weights_first"] else TRANSFORMED_WEIGHTS,
        prepacked=cut["filters"] * size.points * cut["u_point"] if problem.prepacked else 0,
        supports_epilogue=True,
        supports_accumulate=problem.channels_last,
        block=cut["block"],
        units="tiles",
        o_block=o_block,
        part_channels=min(c, PART),
        multiply_adds=done,
    )
    job = problem.job(plan) | cut
    job |= {
        "transforms": size.number,
        "c": c,
        "o": problem.output_channels,
        "part": plan.part_channels,
        "parts": -(-c // plan.part_channels),
        "blocks": -(-cut["tiles"] // plan.block),
        "w_group": problem.o * w.strides[0],
        "w_size": 1 + sum((n - 1) * s for n, s in zip(w.shape, w.strides, strict=True)),
        "work": float(done),
    }
    return WinogradCorrelation(job, phases), plan


def _cut(problem: Problem, size: Size) -> Fields:
    """Return the fields shared by both schedules of a correlation (see _winograd.pyx)."""
    phases, lanes, c = _phase_count(problem), _isa.lanes(), problem.reduction_channels
    forward = problem.pass_name == FORWARD
    sources, targets = (phases, 1) if forward else (1, phases)
    o_blocks = -(-problem.output_channels // O_BLOCK)
    return {
        "sources": sources,
        "targets": targets,
        "o_block": up(-(-problem.output_channels // o_blocks), _isa.panel()),
        "o_blocks": o_blocks,
        # Blocks of output channels, over all groups and targets.
        "filters": problem.geometry.groups * targets * o_blocks,
        "pass_blocks": targets * o_blocks,
        "tiles": _all_tiles(problem, size),
        "v_tile": up((sources - 1) * c + up(c, lanes), lanes),
    }


# Both schedules pad a point by one cache line, so that the points of a tile do not all map to the
# same cache sets.


def _weights_first(problem: Problem, size: Size) -> Fields | None:
    """Return block sizes for items that are blocks of output channels, or None."""
    cut, c = _cut(problem, size), problem.reduction_channels
    tiles, o_block, panel = cut["tiles"], cut["o_block"], _isa.panel()
    large = _transformed_bytes(problem, size) > LARGE_WEIGHTS_BYTES
    if not (_has_few_tiles(problem, size) and (large or problem.prepacked)):
        return None
    v_point = tiles * cut["v_tile"] + panel
    u_point = (c if problem.prepacked else min(c, PART)) * o_block + panel
    return cut | {
        "weights_first": True,
        "block": -(-tiles // ITEMS),
        "items": cut["filters"],
        "v_point": v_point,
        "u_point": u_point,
        "m_point": tiles * o_block + panel,
        "shared": lines(problem.geometry.groups * size.points * v_point),
        "m_first": 0 if problem.prepacked else lines(size.points * u_point),
    }


def _tiles_first(problem: Problem, size: Size) -> Fields:
    """Return block sizes for items that are blocks of tiles."""
    g, cut, c = problem.geometry, _cut(problem, size), problem.reduction_channels
    tiles, o_block, panel = cut["tiles"], cut["o_block"], _isa.panel()
    fit = BLOCK_BYTES // (size.points * 4 * (cut["v_tile"] + o_block))
    block = up(max(1, min(fit, tiles // ITEMS)), _isa.rows())
    v_point, u_point = block * cut["v_tile"] + panel, cut["sources"] * c * o_block
    one_block = g.groups * size.points * u_point
    if not problem.prepacked:
        fit = MOST_WEIGHTS * math.prod(g.weight_shape) // one_block
        cut["pass_blocks"] = min(cut["pass_blocks"], max(1, fit))
    return cut | {
        "weights_first": False,
        "block": block,
        "items": g.groups * -(-tiles // block),
        "v_point": v_point,
        "u_point": u_point,
        "m_point": block * o_block + panel,
        "shared": 0 if problem.prepacked else lines(cut["pass_blocks"] * one_block),
        "m_first": lines(size.points * v_point),
    }


def _weight_gradient(problem: Problem) -> tuple[WinogradWeightGradient, PassPlan]:
    g, size, w = problem.geometry, _best_size(problem), problem.output
    panel, tiles, c = _isa.panel(), _all_tiles(problem, size), problem.c
    narrow = {"narrow": problem.narrow_left}
    phases = [
        {
            "x": input_tiling(problem, size, remainders) | narrow,
            "filters": filters_of(g.axes, size, w, remainders, rotated=False)
            | {"lane": w.strides[1], "sum": 0},
        }
        for remainders in product(*(range(a.stride) for a in g.axes))
    ]
    o_block = min(problem.o, WIDE_O_BLOCK if tiles <= FEW_TILES else O_BLOCK)
    c_block = up(share(c, O_BLOCK), panel)
    pieces = g.groups * len(phases) * -(-problem.o // o_block) * -(-c // c_block)
    block = min(SUMMED_TILES, tiles)
    gradient = math.prod(g.weight_shape)
    runs = partials(pieces, tiles // block, 4 * gradient)
    z_tile = up(o_block, _isa.lanes())
    # One more cache line, so that the points of a tile do not all map to the same cache sets.
    z_point, v_point = block * z_tile + panel, block * c_block + panel
    sum_point = o_block * c_block + panel
    v_first = lines(size.points * z_point)
    sum_first = v_first + lines(size.points * v_point)
    done = _products(problem, size)
    plan = PassPlan(
        algorithm=_NAME,
        reason=_reason(problem, size, done),
        itemsize=4,
        items=pieces * runs,
        scratch=sum_first + lines(size.points * sum_point),
        shared=lines(runs * gradient) if runs > 1 else 0,
        shared_contents=PARTIAL_SUMS,
        block=block,
        units="tiles",
        o_block=o_block,
        part_channels=c_block,
        partials=runs,
        multiply_adds=done,
    )
    job = problem.job(plan) | {
        "gy": output_tiling(problem, size, problem.right) | narrow,
        "transforms": size.number,
        "c_block": c_block,
        "c_blocks": -(-c // c_block),
        "tiles": tiles,
        "phases": len(phases),
        "z_tile": z_tile,
        "z_point": z_point,
        "v_point": v_point,
        "sum_point": sum_point,
        "v_first": v_first,
        "sum_first": sum_first,
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


WINOGRAD = Algorithm(
    *(_NAME, PASSES, _prepare, _impossible, _unprofitable), direct=False, not_narrow=not_by_pixel
)
