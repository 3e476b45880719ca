"""Plan input gradients by gemm and col2im: columns = gy @ w; kernel: _gemm_col2im.pyx.

Supports every input gradient; fast for few input channels and kernels that do not overlap.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore.engine.conv.blocks import BLOCK, ITEMS, lines, most_packed, parts
from convcore.engine.conv.im2col._gemm_col2im import GemmCol2im
from convcore.engine.conv.im2col.gemm import is_contiguous_weight, is_matrix, largest
from convcore.engine.conv.problem import INPUT_GRAD, Algorithm, PassPlan, Problem
from convcore.engine.conv.struct_fields import forward_lines, output_lines, three, window
from convcore.engine.geometry import Axis, Geometry
from convcore.engine.runtime.checks import Array

_NAME = "gemm_col2im"


class _Converting:
    """Kernel wrapper that first makes the weights contiguous, in the memory format's order."""

    __slots__ = ("channels_last", "kernel", "threads")

    def __init__(self, kernel: GemmCol2im, channels_last: bool) -> None:
        self.kernel, self.channels_last = kernel, channels_last
        self.threads = kernel.threads

    def run(self, gy: Array, w: Array, gx: Array, workspace: Array, threads: int) -> None:
        """Compute the input gradient and write gx."""
        if self.channels_last:
            w = np.moveaxis(w, 1, -1)
        self.kernel.run(gy, np.ascontiguousarray(w), gx, workspace, threads)


def _prepare(problem: Problem) -> tuple[Any, PassPlan]:
    g, last, gy = problem.geometry, problem.channels_last, problem.left
    direct = is_matrix(gy, last)
    plan = _plan(problem, direct)
    axes = three(g.axes)
    axis = 3 - g.rank + g.axes.index(_tiled_axis(g))
    job = problem.job(plan) | {
        "gx": window(forward_lines(g), problem.output),
        "gy": window(output_lines(g), gy),
        "channels_outer": not last,
        "direct_gy": direct,
        "axis": axis,
        "tiles": -(-axes[axis].size // plan.tile),
    }
    in_place = [gy] if direct else []
    kernel = GemmCol2im(job, problem.dtype.char, largest(problem, *in_place))
    if not is_contiguous_weight(problem.right, last):
        kernel = _Converting(kernel, last)
    return kernel, plan


def _plan(problem: Problem, direct: bool) -> PassPlan:
    """Return the plan of tiles of gx; direct: gemm reads grad_output in place."""
    g, itemsize = problem.geometry, problem.itemsize
    axis = _tiled_axis(g)
    # Columns that cross a tile's edge are computed once per tile: keep tiles much longer.
    least = 8 * axis.extent
    tiles = max(1, min(-(-ITEMS // max(g.n * g.groups, 1)), axis.size // least))
    tile = max(1, -(-axis.size // tiles))
    block = min(BLOCK, g.pixels)
    if not direct:
        block = min(block, most_packed(problem.o, itemsize))
    part_taps, part_channels = parts(g.taps, problem.c, block * itemsize, not problem.channels_last)
    patches = block * part_taps * part_channels
    return PassPlan(
        algorithm=_NAME,
        reason="columns of all taps by one gemm, each added where its tap reads",
        itemsize=itemsize,
        items=g.n * g.groups * -(-axis.size // tile),
        scratch=lines(patches + (0 if direct else block * problem.o)),
        block=block,
        o_block=problem.o,
        part_taps=part_taps,
        part_channels=part_channels,
        patches=patches,
        tile=tile,
        multiply_adds=g.n
        * _made(axis, tile)
        * (g.pixels // max(axis.out, 1))
        * g.c_out
        * g.columns,
    )


def _made(axis: Axis, tile: int) -> int:
    """Return the computed columns' outputs along an axis, counted once per tile they touch."""
    made = 0
    for low in range(0, axis.size, tile):
        last = min(low + tile, axis.size) - 1 + axis.before
        first = low + axis.before - axis.dilation * (axis.kernel - 1)
        begin, end = max(-(-first // axis.stride), 0), min(last // axis.stride + 1, axis.out)
        made += max(end - begin, 0)
    return made


def _tiled_axis(geometry: Geometry) -> Axis:
    """Return the tiled axis: the outermost axis with more than one output, or the last axis.

    All axes before it have one output, so the outputs that touch a tile are one contiguous range.
    """
    return next((a for a in geometry.axes if a.out > 1), geometry.axes[-1])


GEMM_COL2IM = Algorithm(_NAME, (INPUT_GRAD,), _prepare)
