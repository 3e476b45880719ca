"""From a plan and the arrays' strides to the kernels' arguments: one object a geometry, kept.

Field names are those of the structs in kernels/: Line and Window in _im2col.pxd, Job and Phase in
_conv.pyx, _conv_weight.pyx, _conv_scatter.pyx and _depthwise.pyx.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from typing import Any

from convcore.engine import plan as plans
from convcore.engine.geometry import Axis, Geometry
from convcore.engine.layout import Layout, dense
from convcore.engine.phases import axis_phases
from convcore.engine.plan import MapPlan
from convcore.kernels._conv import Correlation
from convcore.kernels._conv_scatter import ScatteredGradient
from convcore.kernels._conv_weight import WeightGradient
from convcore.kernels._depthwise import DepthwiseWeight

Fields = dict[str, Any]


def forward_job(
    geometry: Geometry, kind: str, itemsize: int, x: Layout, w: Layout, channels_last: bool
) -> tuple[Correlation, MapPlan]:
    """Return the kernel of the forward map and its plan."""
    g = geometry
    phase = {
        "window": window(forward_lines(g), x),
        "blocks": plans.cut(g.n, g.pixels, channels_last),
        "out_first": [0, 0, 0],
        "out_step": [1, 1, 1],
        "kernel_first": [0, 0, 0],
        "kernel_step": [1, 1, 1],
    }
    y = dense((g.n, g.c_out, *(a.out for a in three(g.axes))), channels_last)
    if _by_channel(g, x, channels_last):
        plan = plans.plan_depthwise(g, itemsize, [(g.pixels, g.taps)])
        return _depthwise(g, kind, plan, [phase], x, w, y), plan
    matrix = is_matrix(x, channels_last)
    pack = not _is_contiguous_weight(w, channels_last)
    plan = plans.plan_forward(g, itemsize, channels_last, matrix, pack)
    job = {
        "channels_last": channels_last,
        "channels_outer": not channels_last and not pack,
        "transposed": False,
        "pack": pack,
        "by_channel": False,
        "direct_x": matrix and plans.is_pointwise(g),
        "groups": g.groups,
        "c": g.c_in // g.groups,
        "o": g.c_out // g.groups,
        "w_o": w.strides[0],
        "w_c": w.strides[1],
    }
    return _correlation(g, kind, plan, job, [phase], x, w, y), plan


def input_grad_job(
    geometry: Geometry, kind: str, itemsize: int, gy: Layout, w: Layout, channels_last: bool
) -> tuple[Correlation | ScatteredGradient, MapPlan]:
    """Return the kernel of the input gradient and its plan.

    A ScatteredGradient wants its weights contiguous in the memory format: (C_out, C, taps), or
    (C_out, taps, C) if channels_last.
    """
    g = geometry
    gx = dense((g.n, g.c_in, *(a.size for a in three(g.axes))), channels_last)
    if _by_channel(g, gy, channels_last) and plans.has_few_phases(g):
        plan = plans.plan_depthwise(g, itemsize, plans.phase_shapes(g))
        return _depthwise(g, kind, plan, _gathered_phases(g, gy, True), gy, w, gx), plan
    matrix = is_matrix(gy, channels_last)
    # With one tap the weights lie as (K, o) already: K is the output channels themselves.
    pack = g.taps > 1 or not _is_contiguous_weight(w, channels_last)
    plan = plans.plan_input_grad(g, itemsize, channels_last, matrix, pack)
    if plan.tile:
        return _scatter(g, kind, plan, gy, gx, channels_last), plan
    job = {
        "channels_last": channels_last,
        "channels_outer": False,
        "transposed": True,
        "pack": pack,
        "by_channel": False,
        "direct_x": matrix and plans.is_pointwise(g),
        "groups": g.groups,
        "c": g.c_out // g.groups,
        "o": g.c_in // g.groups,
        "w_o": w.strides[1],
        "w_c": w.strides[0],
    }
    phases = _gathered_phases(g, gy, channels_last)
    return _correlation(g, kind, plan, job, phases, gy, w, gx), plan


def weight_grad_job(
    geometry: Geometry, kind: str, itemsize: int, x: Layout, gy: Layout, channels_last: bool
) -> tuple[WeightGradient | DepthwiseWeight, MapPlan]:
    """Return the kernel of the weight gradient and its plan."""
    g = geometry
    if plans.is_depthwise(g):
        plan = plans.plan_depthwise_weight(g, itemsize)
        fields = {
            "x": window(forward_lines(g), x),
            "gy": window(output_lines(g), gy),
            "n": g.n,
            "channels": g.c_out,
            "partials": plan.partials,
            "items": plan.items,
            "work": float(g.multiply_adds),
        }
        return DepthwiseWeight(kind, fields), plan
    direct_x = plans.is_pointwise(g) and is_matrix(x, channels_last)
    direct_gy = is_matrix(gy, channels_last)
    plan = plans.plan_weight_grad(g, itemsize, channels_last, direct_x, direct_gy)
    c, o = g.c_in // g.groups, g.c_out // g.groups
    job = {
        "x": window(forward_lines(g), x),
        "gy": window(output_lines(g), gy),
        "blocks": asdict(plans.weight_blocks(g, itemsize, channels_last)),
        "channels_last": channels_last,
        "channels_outer": not channels_last,
        "direct_x": direct_x,
        "direct_gy": direct_gy,
        "groups": g.groups,
        "c": c,
        "o": o,
        "o_block": plan.o_block,
        "o_blocks": -(-o // plan.o_block),
        "part_taps": plan.part_taps,
        "part_channels": plan.part_channels,
        "tap_parts": -(-g.taps // plan.part_taps),
        "channel_parts": -(-c // plan.part_channels),
        "partials": plan.partials,
        "patches": plan.patches,
        "scratch": plan.scratch,
        "items": plan.items,
        "work": float(g.multiply_adds),
    }
    direct = [x] * direct_x + [gy] * direct_gy
    return WeightGradient(kind, job, _largest(g, channels_last, *direct)), plan


def three(axes: Sequence[Axis]) -> list[Axis]:
    """Return three axes: those missing have size 1 and a kernel of 1, and come first."""
    return [Axis(1, 1)] * (3 - len(axes)) + list(axes)


def line(size: int, count: int, stride: int, taps: int, first: int, step: int) -> Fields:
    """Return the fields of a Line."""
    return {
        "size": size,
        "count": count,
        "stride": stride,
        "taps": taps,
        "first": first,
        "step": step,
    }


def forward_lines(geometry: Geometry) -> list[Fields]:
    """Return how outputs look at the input."""
    return [
        line(a.size, a.out, a.stride, a.kernel, -a.before, a.dilation) for a in three(geometry.axes)
    ]


def output_lines(geometry: Geometry) -> list[Fields]:
    """Return how outputs look at themselves: one tap, no pads."""
    return [line(a.out, a.out, 1, 1, 0, 1) for a in three(geometry.axes)]


def window(lines: Sequence[Fields], array: Layout) -> Fields:
    """Return the fields of a Window over an array.

    An axis of length 1 may have any stride; where the array is a matrix in place, the window gets
    the matrix's leading dimensions instead.
    """
    s_n, s_c, *s = array.strides
    if array.dense_rows is not None:
        s[2] = array.dense_rows
    elif array.dense_columns is not None:
        s_c = array.dense_columns
    return {
        "line": list(lines),
        "s_n": s_n,
        "s_c": s_c,
        "s": s,
        "taps": math.prod(n["taps"] for n in lines),
        "pixels": math.prod(n["count"] for n in lines),
    }


def is_matrix(array: Layout, channels_last: bool) -> bool:
    """Return whether gemm can take the array in place."""
    return (array.dense_rows if channels_last else array.dense_columns) is not None


def _is_contiguous_weight(w: Layout, channels_last: bool) -> bool:
    """Return whether the weights are a contiguous (O, C, taps), or (O, taps, C), in memory."""
    expected = dense(w.shape, channels_last)
    return all(
        size == 1 or stride == wanted
        for size, stride, wanted in zip(w.shape, w.strides, expected.strides, strict=True)
    )


def _gathered_phases(g: Geometry, gy: Layout, channels_last: bool) -> list[Fields]:
    """Return the phases of the input gradient, apart from their places among each other."""
    axes = three(g.axes)
    return [
        {
            "window": window(
                [
                    line(a.out, p.count, 1, p.taps, p.first, p.step)
                    for a, p in zip(axes, combined, strict=True)
                ],
                gy,
            ),
            "blocks": plans.cut(g.n, math.prod(p.count for p in combined), channels_last),
            "out_first": [p.start for p in combined],
            "out_step": [p.stride for p in combined],
            "kernel_first": [p.tap for p in combined],
            "kernel_step": [-p.period for p in combined],
        }
        for combined in product(*(axis_phases(a) for a in axes))
    ]


def _correlation(
    g: Geometry,
    kind: str,
    plan: MapPlan,
    job: Fields,
    phases: list[Fields],
    x: Layout,
    w: Layout,
    y: Layout,
) -> Correlation:
    """Make the kernel, each phase with the places of its items and weights."""
    job.update(
        direct_y=len(phases) == 1,
        o_block=plan.o_block,
        o_blocks=-(-job["o"] // plan.o_block),
        part_taps=plan.part_taps,
        part_channels=plan.part_channels,
        w_group=g.c_out // g.groups * w.strides[0],
        w_k=list(w.strides[2:]),
        y_n=y.strides[0],
        y_c=y.strides[1],
        y_s=list(y.strides[2:]),
        patches=plan.patches,
        scratch=plan.scratch,
        packed=plan.shared,
        phases=len(phases),
        items=plan.items,
        work=float(g.multiply_adds),
    )
    items = packed = 0
    for phase in phases:
        blocks = phase["blocks"]
        phase.update(blocks=asdict(blocks), first_item=items, packed=packed)
        items += blocks.count * job["o_blocks"] * job["groups"]
        packed += phase["window"]["taps"] * job["groups"] * job["c"] * job["o"]
    assert items == plan.items, (items, plan.items)
    direct = [x] if job["direct_x"] else []
    return Correlation(kind, job, phases, _largest(g, job["channels_last"], *direct))


def _by_channel(g: Geometry, x: Layout, channels_last: bool) -> bool:
    """Return whether the depthwise kernel can take the array: its channels lie side by side."""
    return channels_last and plans.is_depthwise(g) and x.strides[1] == 1


def _depthwise(
    g: Geometry, kind: str, plan: MapPlan, phases: list[Fields], x: Layout, w: Layout, y: Layout
) -> Correlation:
    """Make the kernel of a depthwise map: one group, whose weights are packed as (taps, C)."""
    job = {
        "channels_last": True,
        "channels_outer": False,
        "transposed": True,
        "pack": True,
        "by_channel": True,
        "direct_x": False,
        "groups": 1,
        "c": 1,
        "o": g.c_out,
        "w_o": w.strides[0],
        "w_c": w.strides[1],
    }
    return _correlation(g, kind, plan, job, phases, x, w, y)


def _scatter(
    g: Geometry, kind: str, plan: MapPlan, gy: Layout, gx: Layout, channels_last: bool
) -> ScatteredGradient:
    axes = three(g.axes)
    axis = 3 - g.rank + g.axes.index(plans.tiled_axis(g))
    job = {
        "gx": window(forward_lines(g), gx),
        "gy": window(output_lines(g), gy),
        "channels_last": channels_last,
        "channels_outer": not channels_last,
        "direct_gy": is_matrix(gy, channels_last),
        "groups": g.groups,
        "c": g.c_in // g.groups,
        "o": g.c_out // g.groups,
        "axis": axis,
        "tile": plan.tile,
        "tiles": -(-axes[axis].size // plan.tile),
        "block": plan.block,
        "part_taps": plan.part_taps,
        "part_channels": plan.part_channels,
        "patches": plan.patches,
        "scratch": plan.scratch,
        "items": plan.items,
        "work": float(g.multiply_adds),
    }
    direct = [gy] if job["direct_gy"] else []
    return ScatteredGradient(kind, job, _largest(g, channels_last, *direct))


def _largest(g: Geometry, channels_last: bool, *direct: Layout) -> int:
    """Return the largest size or leading dimension that a gemm of this convolution will meet.

    direct: the arrays that are multiplied in place; others are gathered into scratch first.
    """
    steps = [a.dense_rows if channels_last else a.dense_columns for a in direct]
    # In contiguous memory a row of a result is a whole image; in channels_last it is a pixel.
    rows = 0 if channels_last else max(g.pixels, math.prod(a.size for a in g.axes))
    return max(g.columns, g.c_out * g.taps, g.c_in, rows, *(step or 0 for step in steps))
