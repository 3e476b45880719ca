"""Plan weight gradients by im2col and gemm, gw = gy @ patches; kernel: _im2col_gemm_weight.pyx.

Used by plan.py and pointwise.py, which differ in how they get the patches.
"""

from __future__ import annotations

from dataclasses import asdict

from convcore.engine.conv.blocks import (
    BLOCK,
    ITEMS,
    PART_BYTES,
    Blocks,
    channel_block,
    cut,
    lines,
    most_packed,
    partials,
    parts,
    share,
)
from convcore.engine.conv.im2col._im2col_gemm_weight import WeightGradient
from convcore.engine.conv.im2col.gemm import is_matrix, largest
from convcore.engine.conv.problem import PARTIAL_SUMS, PassPlan, Problem
from convcore.engine.conv.struct_fields import forward_lines, output_lines, window

# Maximum length of the weight gradient's blocks, as a multiple of the other passes' blocks.
MOST_SUMMED_BLOCKS = 8


def weight_gradient(
    problem: Problem, name: str, direct: bool = False
) -> tuple[WeightGradient, PassPlan]:
    """Return the kernel and the plan; direct: the input is its own matrix of patches."""
    g, last = problem.geometry, problem.channels_last
    x, gy = problem.left, problem.right
    direct_gy = is_matrix(gy, last)
    blocks = _blocks(problem)
    plan = _plan(problem, name, blocks, direct, direct_gy)
    job = problem.job(plan) | {
        "x": window(forward_lines(g), x),
        "gy": window(output_lines(g), gy),
        "blocks": asdict(blocks),
        "channels_outer": not last,
        "direct_x": direct,
        "direct_gy": direct_gy,
        "tap_parts": -(-g.taps // plan.part_taps),
        "channel_parts": -(-problem.c // plan.part_channels),
    }
    in_place = [x] * direct + [gy] * direct_gy
    return WeightGradient(job, problem.dtype.char, largest(problem, *in_place)), plan


def _blocks(problem: Problem) -> Blocks:
    """Return the blocks of pixels: longer where patches are small.

    The gemm sums over the block, and gw is read and written once per block.
    """
    g = problem.geometry
    fit = PART_BYTES // (BLOCK * g.columns * problem.itemsize)
    most = BLOCK * max(1, min(fit, MOST_SUMMED_BLOCKS))
    return cut(g.n, g.pixels, problem.channels_last, most)


def _plan(problem: Problem, name: str, blocks: Blocks, direct_x: bool, direct_gy: bool) -> PassPlan:
    """Return the plan; work items are blocks of the gradient times chunks of pixels."""
    g, last, itemsize = problem.geometry, problem.channels_last, problem.itemsize
    c, o = problem.c, problem.o
    part_taps, part_channels = parts(g.taps, c, max(blocks.size, 1) * itemsize, not last)
    # In contiguous memory a block of several images is not a matrix: both arrays are gathered.
    whole = last or g.n == 1 or blocks.unit == g.pixels
    packed_gy = not (direct_gy and whole)
    o_block = share(o, most_packed(blocks.size, itemsize)) if packed_gy else o
    pieces = g.groups * -(-g.taps // part_taps) * -(-c // part_channels) * -(-o // o_block)
    size = g.c_out * g.columns
    runs = partials(pieces, blocks.count, size * itemsize)
    # Too few pixels for many threads: cut the output channels, though each item packs the patches
    # again, which takes 6 to 13 % on one thread; where gradients are packed too, up to 32 %.
    if not packed_gy and pieces * runs < ITEMS // 2:
        o_block = channel_block(o, pieces * runs, o)
        pieces *= -(-o // o_block)
    patches = 0 if direct_x and whole else blocks.size * part_taps * part_channels
    packed = blocks.size * o_block if packed_gy else 0
    return PassPlan(
        algorithm=name,
        reason=f"{pieces} pieces of the gradient, each summed in {runs} runs of pixels",
        itemsize=itemsize,
        items=pieces * runs,
        scratch=lines(patches + packed),
        shared=runs * size if runs > 1 else 0,
        shared_contents=PARTIAL_SUMS,
        block=blocks.size,
        o_block=o_block,
        part_taps=part_taps,
        part_channels=part_channels,
        patches=patches,
        partials=runs,
        multiply_adds=g.multiply_adds,
    )
