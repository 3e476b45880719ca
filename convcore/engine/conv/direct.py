"""Struct fields and sizes shared by the direct float32 algorithms (depthwise and grouped).

Field names are those of convcore_direct_axis and convcore_direct in engine/conv/arguments.h.
"""

from __future__ import annotations

import itertools
import math

from convcore.engine.conv.blocks import up
from convcore.engine.conv.depthwise._depthwise_float import KERNEL, PHASES
from convcore.engine.conv.problem import INPUT_GRAD, WEIGHT_GRAD, Problem, dense_problem
from convcore.engine.conv.stride_phases import axis_phases
from convcore.engine.conv.struct_fields import Fields, three
from convcore.engine.geometry import Axis
from convcore.engine.runtime import _isa
from convcore.engine.runtime.layout import Layout

# (kernel, stride) pairs that have specialised loops.
_SPECIALISED = ((3, 1), (3, 2), (5, 1), (5, 2), (7, 1))


def cannot_read(problem: Problem) -> str | None:
    """Return why direct kernels cannot read a problem's arrays, or None; ignores channels."""
    g = problem.geometry
    if problem.dtype.char != "f":
        return "not float32"
    axes = three(g.axes)
    if 0 in g.input_shape or g.n * g.pixels <= 0:
        return "an empty array"
    if max(a.kernel for a in axes) > KERNEL:
        return f"a kernel longer than {KERNEL}"
    if problem.pass_name == INPUT_GRAD and max(a.stride for a in axes) > PHASES:
        return f"a stride of more than {PHASES}"
    dense = dense_problem(problem.pass_name, g, problem.dtype, problem.channels_last)
    pixels = is_dense(problem.left, dense.left)
    if problem.pass_name == WEIGHT_GRAD:
        pixels = pixels and is_dense(problem.right, dense.right)
    if not pixels:
        return "an array is not dense in the result's memory format"
    return None


def is_dense(array: Layout, dense: Layout) -> bool:
    """Return whether an array has the same strides as a dense array of its shape."""
    return all(
        size == 1 or stride == wanted
        for size, stride, wanted in zip(array.shape, array.strides, dense.strides, strict=True)
    )


def direct_fields(problem: Problem, rotate: bool, rows: int) -> Fields:
    """Return the fields of a Direct; rotate: number the taps of a kernel rotated by 180 degrees."""
    g = problem.geometry
    transposed = problem.pass_name == INPUT_GRAD
    depth, row, column = three(g.axes)
    channels = g.c_out if transposed else g.c_in
    axes = [_gradient_axis(a, rotate) if transposed else _axis(a) for a in (depth, row, column)]
    # A weight gradient accumulates one depth tap at a time.
    flat = problem.pass_name == WEIGHT_GRAD or _is_flat(depth, transposed)
    return {
        "depth": axes[0],
        "row": axes[1],
        "column": axes[2],
        "channels_last": problem.channels_last,
        "specialisation": _specialisation(row, column, transposed) if flat else 0,
        "channels": channels,
        "size": g.n * channels * math.prod(axis["size"] for axis in axes),
        "kernel_columns": column.kernel,
        "kernel_plane": row.kernel * column.kernel,
        "taps": g.taps,
        "rows": rows,
        "narrow": problem.narrow_left,
    }


def _is_flat(depth: Axis, transposed: bool) -> bool:
    """Return whether each output slice reads exactly one input slice."""
    padded = depth.before or depth.after
    return depth.kernel == 1 and not padded and not (transposed and depth.stride > 1)


def _specialisation(row: Axis, column: Axis, transposed: bool) -> int:
    """Return the number of the specialised loops for a kernel, or 0."""
    kernel, stride = row.kernel, row.stride
    if (column.kernel, column.stride) != (kernel, stride) or (kernel, stride) not in _SPECIALISED:
        return 0
    if row.dilation != 1 or column.dilation != 1:
        return 0
    if transposed and stride == 2:
        padded = row.before == column.before == kernel // 2
        return -(10 * kernel + stride) if padded else 0
    return 10 * kernel + stride


def _axis(axis: Axis) -> Fields:
    """Return the fields of an axis of a forward pass."""
    phase = (-axis.before, 0, axis.kernel)
    return _filled(axis.size, axis.out, axis.stride, [phase], axis.dilation, 1)


def _gradient_axis(axis: Axis, rotate: bool) -> Fields:
    """Return the fields of an axis of an input gradient: one phase per remainder of the stride."""
    found = axis_phases(axis)
    phases = [(p.first, axis.kernel - 1 - p.tap if rotate else p.tap, p.taps) for p in found]
    phases += [(0, 0, 0)] * (axis.stride - len(found))
    period = found[0].period
    return _filled(axis.out, axis.size, 1, phases, found[0].step, period if rotate else -period)


def _filled(
    size: int, out: int, stride: int, phases: list[tuple[int, int, int]], step: int, tap_step: int
) -> Fields:
    """Return an axis's fields from the (first offset, first tap, taps) of each phase."""
    ends = [(first, first + (taps - 1) * step) for first, _, taps in phases if taps] or [(0, 0)]
    low = min(first for first, _ in ends)
    rest = [0] * (PHASES - len(phases))
    begin = [sum(taps for *_, taps in phases[:i]) for i in range(len(phases) + 1)]
    return {
        "size": size,
        "out": out,
        "stride": stride,
        "phases": len(phases),
        "low": low,
        "span": max(last for _, last in ends) - low + 1,
        "begin": begin + [begin[-1]] * len(rest),
        "first": [first for first, *_ in phases] + rest,
        "tap": [tap for _, tap, _ in phases] + rest,
        "step": step,
        "tap_step": tap_step,
    }


def segment_floats(column: Fields) -> int:
    """Return the floats of a row of a channel: plane_shape's pitch in halo_tile.h."""
    lanes = _isa.lanes()
    seen = -(-places(column, phase_rows(column)) // column["stride"])
    return column["stride"] * up(seen + lanes, lanes)


def phase_rows(fields: Fields) -> int:
    """Return the number of outputs of an axis's longest phase."""
    return -(-fields["out"] // fields["phases"])


def halo_slices(problem: Problem, fields: Fields) -> int:
    """Return the maximum number of slices of a halo tile: those read by one output slice."""
    if problem.pass_name == WEIGHT_GRAD:
        return 1
    return max(end - start for start, end in itertools.pairwise(fields["depth"]["begin"]))


def places(axis: Fields, outputs: int) -> int:
    """Return the length of the input range read by `outputs` outputs of each phase."""
    return (outputs - 1) * axis["stride"] + axis["span"]


def plane_floats(fields: Fields, slices: int, rows: int) -> int:
    """Return the floats of one channel's halo tiles for `rows` output rows of each phase.

    Includes `fill_plane`'s halo tile and the lines that `merge_line` interleaves (halo_tile.h).
    """
    lanes, row, column = _isa.lanes(), fields["row"], fields["column"]
    columns = phase_rows(column)
    lines = rows * column["phases"] * up(columns + lanes, lanes) if column["phases"] > 1 else 0
    return slices * places(row, rows) * segment_floats(column) + lanes + lines


def channel_floats(fields: Fields, slices: int, rows: int, width: int) -> int:
    """Return the floats of a halo tile of `width` contiguous channels."""
    column = fields["column"]
    line = places(column, phase_rows(column)) * width
    return slices * places(fields["row"], rows) * line + _isa.lanes()
