"""Winograd tiles: their offsets in the arrays, and the taps of each phase in the weights.

Each function returns the fields of a struct of winograd.h: Tiling or Filters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from convcore.engine.conv.problem import FORWARD, INPUT_GRAD, Problem
from convcore.engine.conv.struct_fields import Fields
from convcore.engine.geometry import Axis
from convcore.engine.runtime._isa import LONGEST_RUN
from convcore.engine.runtime.layout import Layout


class Size(NamedTuple):
    """A transform F(outputs x outputs, taps x taps) and its index in the kernels' table."""

    number: int
    outputs: int
    taps: int

    @property
    def points(self) -> int:
        """Return the number of transformed points of a tile (products per pair of channels)."""
        return (self.outputs + self.taps - 1) ** 2

    @property
    def name(self) -> str:
        """Return the transform's name in the literature, such as F(2x2, 3x3)."""
        return f"F({self.outputs}x{self.outputs}, {self.taps}x{self.taps})"


SIZES = (Size(0, 2, 3), Size(1, 4, 3), Size(2, 3, 2), Size(3, 2, 5))


class Cut(NamedTuple):
    """Tiles of one axis: `elements` in each of `residues` residues.

    Elements are the outputs, or, for the input gradient, every stride-th element of the result, the
    first of which has index `start`, counted from the beginning of the padding.
    """

    axis: Axis
    elements: int
    residues: int
    start: int

    def tiles(self, size: Size) -> int:
        """Return the number of tiles of a residue."""
        return -(-self.elements // size.outputs)


def cuts_of(problem: Problem) -> list[Cut]:
    """Return the Cut of each axis of the result (of the output for a weight gradient)."""
    return [_cut(axis, problem.pass_name) for axis in problem.geometry.axes]


def _cut(axis: Axis, pass_name: str) -> Cut:
    if pass_name != INPUT_GRAD:
        return Cut(axis, -(-axis.out // axis.dilation), min(axis.out, axis.dilation), 0)
    if axis.stride == 1:
        return Cut(axis, -(-axis.size // axis.dilation), min(axis.size, axis.dilation), axis.before)
    start = axis.before // axis.stride
    return Cut(axis, (axis.size - 1 + axis.before) // axis.stride - start + 1, 1, start)


def _tiling(
    cuts: Sequence[Cut],
    size: Size,
    array: Layout,
    extents: Sequence[int],
    firsts: Sequence[int],
    steps: Sequence[int],
) -> Fields:
    """Return a Tiling: tiles begin at `firsts`, and their elements are `steps` apart."""
    return {
        "image": array.strides[0],
        "channel": array.strides[1],
        "line": list(array.strides[3:]),
        "size": list(extents),
        "first": list(firsts),
        "step": list(steps),
        "advance": [step * size.outputs for step in steps],
        "residue_step": [1, 1],
        "residues": [c.residues for c in cuts],
        "tiles": [c.tiles(size) for c in cuts],
        "narrow": False,
    }


def input_tiling(problem: Problem, size: Size, remainders: Sequence[int]) -> Fields:
    """Return the Tiling of the input, or of every stride-th element starting at each remainder."""
    axes = problem.geometry.axes
    return _tiling(
        cuts_of(problem),
        size,
        problem.left,
        [a.size for a in axes],
        [r - a.before for a, r in zip(axes, remainders, strict=True)],
        [a.dilation if a.stride == 1 else a.stride for a in axes],
    )


def output_tiling(problem: Problem, size: Size, array: Layout) -> Fields:
    """Return the Tiling of the output, or of grad_output where it is summed over."""
    axes = problem.geometry.axes
    extents, steps = [a.out for a in axes], [a.dilation for a in axes]
    return _tiling(cuts_of(problem), size, array, extents, [0, 0], steps)


def _gathered_tiling(problem: Problem, size: Size) -> Fields:
    """Return the Tiling of grad_output that the input gradient gathers from."""
    axes, cuts = problem.geometry.axes, cuts_of(problem)
    firsts = [c.start - a.dilation * (size.taps - 1) for a, c in zip(axes, cuts, strict=True)]
    steps = [a.dilation for a in axes]
    return _tiling(cuts, size, problem.left, [a.out for a in axes], firsts, steps)


def _gradient_tiling(problem: Problem, size: Size, remainders: Sequence[int]) -> Fields:
    """Return the Tiling of the input gradient: every stride-th element from each remainder."""
    axes, cuts = problem.geometry.axes, cuts_of(problem)
    firsts = [
        a.stride * c.start + r - a.before for a, c, r in zip(axes, cuts, remainders, strict=True)
    ]
    steps = [a.dilation if a.stride == 1 else a.stride for a in axes]
    extents = [a.size for a in axes]
    return _tiling(cuts, size, problem.output, extents, firsts, steps)


def filters_of(
    axes: Sequence[Axis], size: Size, w: Layout, remainders: Sequence[int], rotated: bool
) -> Fields:
    """Return the Filters of one phase's taps; rotated: from the last tap to the first."""
    strides, kernels = w.strides[3:], [a.kernel for a in axes]
    taps = [-(-(a.kernel - r) // a.stride) for a, r in zip(axes, remainders, strict=True)]
    side_by_side = strides[1] == 1 and strides[0] == kernels[1]
    fields: Fields = {
        "run": math.prod(kernels) if side_by_side and math.prod(kernels) <= LONGEST_RUN else 0,
        "first": sum(r * s for r, s in zip(remainders, strides, strict=True)),
        "line": [a.stride * s for a, s in zip(axes, strides, strict=True)],
        "begin": [0, 0],
        "to": taps,
    }
    if rotated:
        last = size.taps - 1
        fields["first"] += sum(last * line for line in fields["line"])
        fields["line"] = [-line for line in fields["line"]]
        fields["begin"] = [size.taps - n for n in taps]
        fields["to"] = [size.taps] * 2
    return fields


def phases_of(problem: Problem, size: Size) -> list[Fields]:
    """Return the phases of a correlation."""
    axes, w = problem.geometry.axes, problem.right
    phases = []
    for remainders in product(*(range(a.stride) for a in axes)):
        forward = problem.pass_name == FORWARD
        filters = filters_of(axes, size, w, remainders, rotated=not forward)
        made, summed = w.strides[:2] if forward else w.strides[1::-1]
        if forward:
            x = input_tiling(problem, size, remainders)
            y = output_tiling(problem, size, problem.output)
        else:
            x = _gathered_tiling(problem, size)
            y = _gradient_tiling(problem, size, remainders)
        x["narrow"], y["narrow"] = problem.narrow_left, problem.narrow_output
        phases.append({"x": x, "y": y, "filters": filters | {"lane": made, "sum": summed}})
    return phases
