"""Plan forward passes and input gradients by im2col and gemm; kernel: _im2col_gemm.pyx.

Both are matrix products (pixels, c*taps) @ (c*taps, o) for each group: of patches of the input with
c = C_in/G, or of patches of grad_output with c = C_out/G, one phase at a time (stride_phases.py).
Used by plan.py, stride_decomposition.py, pointwise.py and depthwise/plan.py, which differ in how
they get the patches.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import asdict

from convcore.engine.conv.blocks import BLOCK, channel_block, cut, lines, most_packed, parts
from convcore.engine.conv.im2col._im2col_gemm import Correlation
from convcore.engine.conv.problem import FORWARD, INPUT_GRAD, PACKED_WEIGHTS, PassPlan, Problem
from convcore.engine.conv.stride_phases import axis_phases
from convcore.engine.conv.struct_fields import Fields, forward_lines, line, three, window
from convcore.engine.geometry import Geometry
from convcore.engine.runtime.layout import Layout, dense

# Minimum C_in/G for an input gradient by gathering patches; narrower gemms waste their width.
LEAST_GATHERED_CHANNELS = 16
# Gathering also multiplies by the zeros around grad_output; gemm_col2im does not.  Where that means
# more work than this factor (5x5 kernels on 8x8 maps: 2.25), col2im is cheaper.
MOST_GATHERED_WORK = 1.5
# Phases (stride**rank) beyond which the many small gemms lose to one gemm and col2im.
MOST_PHASES = 16


def correlation(
    problem: Problem, name: str, reason: str, direct: bool = False, by_channel: bool = False
) -> tuple[Correlation, PassPlan]:
    """Return the kernel and the plan of a forward pass or input gradient.

    direct: the array is its own matrix of patches.  by_channel: one channel per group, multiplied
    channel by channel; the kernel then sees one group of C_out outputs.
    """
    phases = phases_of(problem)
    product = _by_channel(problem) if by_channel else _product(problem)
    plan = _plan(problem, name, reason, product, phases, direct)
    w, y = problem.right, problem.output
    job = problem.job(plan) | product
    job |= {
        "direct_x": direct,
        "direct_y": len(phases) == 1,
        "o_blocks": -(-product["o"] // plan.o_block),
        "w_group": problem.o * w.strides[0],
        "w_k": list(w.strides[2:]),
        "y_n": y.strides[0],
        "y_c": y.strides[1],
        "y_s": list(y.strides[2:]),
        "phases": len(phases),
    }
    items = packed = 0
    for phase in phases:
        phase.update(first_item=items, packed=packed)
        items += phase["blocks"]["count"] * job["o_blocks"] * job["groups"]
        packed += phase["window"]["taps"] * job["groups"] * job["c"] * job["o"]
    assert items == plan.items, (items, plan.items)
    in_place = [problem.left] if direct else []
    return Correlation(job, phases, problem.dtype.char, largest(problem, *in_place)), plan


def _product(problem: Problem) -> Fields:
    """Return the gemm's groups, input and output channels, and layout of the weights."""
    g, last, w = problem.geometry, problem.channels_last, problem.right
    forward = problem.pass_name == FORWARD
    # With one tap the weights are (K, o) already: K is the output channels.
    pack = not is_contiguous_weight(w, last) or (not forward and g.taps > 1)
    w_o, w_c = w.strides[:2] if forward else w.strides[1::-1]
    return {
        "channels_last": last,
        "channels_outer": forward and not last and not pack,
        "transposed": not forward,
        "pack": pack,
        "by_channel": False,
        "groups": g.groups,
        "c": problem.reduction_channels,
        "o": problem.output_channels,
        "w_o": w_o,
        "w_c": w_c,
    }


def _by_channel(problem: Problem) -> Fields:
    """Return `_product` for one channel per group: one group, weights packed as (taps, C)."""
    return {
        "channels_last": True,
        "channels_outer": False,
        "transposed": True,
        "pack": True,
        "by_channel": True,
        "groups": 1,
        "c": 1,
        "o": problem.geometry.c_out,
        "w_o": problem.right.strides[0],
        "w_c": problem.right.strides[1],
    }


def _plan(
    problem: Problem, name: str, reason: str, product: Fields, phases: list[Fields], direct: bool
) -> PassPlan:
    """Plan the work items and their memory."""
    n, itemsize = problem.geometry.n, problem.itemsize
    c, o, groups = product["c"], product["o"], product["groups"]
    sizes = [(p["window"]["pixels"], p["window"]["taps"]) for p in phases]
    block = max((p["blocks"]["size"] for p in phases), default=0)
    n_blocks = sum(p["blocks"]["count"] for p in phases)
    part_taps, part_channels = parts(
        max((taps for _, taps in sizes), default=0), c, block * itemsize, product["channels_outer"]
    )
    # In contiguous memory a block of several images is not a matrix: gather, pack, copy back.
    whole = problem.channels_last or n == 1
    whole = whole or all(p["blocks"]["unit"] == p["window"]["pixels"] for p in phases)
    gathered = not (product["by_channel"] or (direct and whole))
    patches = block * part_taps * part_channels if gathered else 0
    written = len(phases) == 1 and whole
    o_block = channel_block(o, n_blocks * groups, o if written else most_packed(block, itemsize))
    packed = 0 if written else block * o_block
    weights = sum(taps for _, taps in sizes) * groups * c * o
    return PassPlan(
        algorithm=name,
        reason=reason,
        itemsize=itemsize,
        items=n_blocks * groups * -(-o // o_block),
        scratch=lines(patches + packed),
        shared=lines(weights) if product["pack"] else 0,
        shared_contents=PACKED_WEIGHTS,
        block=block,
        o_block=o_block,
        part_taps=part_taps,
        part_channels=part_channels,
        patches=patches,
        multiply_adds=n * sum(pixels * taps for pixels, taps in sizes) * groups * c * o,
    )


def phases_of(problem: Problem) -> list[Fields]:
    """Return the phases: one if forward, one per remainder of the stride for the gradient."""
    g, x = problem.geometry, problem.left
    phases: list[Fields]
    if problem.pass_name == FORWARD:
        phases = [
            {
                "window": window(forward_lines(g), x),
                "out_first": [0, 0, 0],
                "out_step": [1, 1, 1],
                "kernel_first": [0, 0, 0],
                "kernel_step": [1, 1, 1],
            }
        ]
    else:
        axes = three(g.axes)
        phases = [
            {
                "window": window(
                    [
                        line(a.out, p.outs, 1, p.taps, p.first, p.step)
                        for a, p in zip(axes, combined, strict=True)
                    ],
                    x,
                ),
                "out_first": [p.start for p in combined],
                "out_step": [p.stride for p in combined],
                "kernel_first": [p.tap for p in combined],
                "kernel_step": [-p.period for p in combined],
            }
            for combined in itertools.product(*(axis_phases(a) for a in axes))
        ]
    for phase in phases:
        phase["blocks"] = asdict(cut(g.n, phase["window"]["pixels"], problem.channels_last, BLOCK))
    return phases


def n_phases(geometry: Geometry) -> int:
    """Return the number of phases of the input gradient."""
    return math.prod(min(a.stride, a.size) for a in geometry.axes)


def too_many_phases(geometry: Geometry) -> str | None:
    """Return a reason if there are too many phases to gather them one by one, else None."""
    phases = n_phases(geometry)
    if phases > MOST_PHASES:
        return f"{phases} remainders of the stride: more small gemms than {MOST_PHASES}"
    return None


def wasteful_to_gather(problem: Problem) -> str | None:
    """Return a reason if gemm_col2im is less work than gathering grad_output, else None."""
    if problem.pass_name != INPUT_GRAD:
        return None
    g = problem.geometry
    if problem.c < LEAST_GATHERED_CHANNELS:
        return f"{problem.c} input channels a group: too few to gather"
    phases = itertools.product(*(axis_phases(a) for a in g.axes))
    gathered = sum(math.prod(p.outs * p.taps for p in combined) for combined in phases)
    work = gathered / max(g.pixels * g.taps, 1)
    if work > MOST_GATHERED_WORK:
        return f"gathering would do {work:.2f} times the work, on padding"
    return None


def is_matrix(array: Layout, channels_last: bool) -> bool:
    """Return whether gemm can read the array in place."""
    return (array.dense_rows if channels_last else array.dense_columns) is not None


def is_contiguous_weight(w: Layout, channels_last: bool) -> bool:
    """Return whether the weights are contiguous in memory as (O, C, taps) or (O, taps, C)."""
    expected = dense(w.shape, channels_last)
    return all(
        size == 1 or stride == wanted
        for size, stride, wanted in zip(w.shape, w.strides, expected.strides, strict=True)
    )


def largest(problem: Problem, *in_place: Layout) -> int:
    """Return the largest size or leading dimension of any gemm of this convolution.

    in_place: the arrays that are multiplied in place; others are gathered first.
    """
    g, last = problem.geometry, problem.channels_last
    steps = [a.dense_rows if last else a.dense_columns for a in in_place]
    # In contiguous memory a row of a result is a whole image; in channels_last it is a pixel.
    rows = 0 if last else max(g.pixels, math.prod(a.size for a in g.axes))
    return max(g.columns, g.c_out * g.taps, g.c_in, rows, *(step or 0 for step in steps))
