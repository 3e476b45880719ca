"""Fields of the kernels' structs Line and Window, from geometry and memory layout.

The structs are in im2col/_im2col.pxd: a Line says which inputs the outputs of one axis read, a
Window combines three Lines with an array's strides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from convcore.engine.geometry import Axis, Geometry
from convcore.engine.runtime.layout import Layout

Fields = dict[str, Any]


def three(axes: Sequence[Axis]) -> list[Axis]:
    """Return three axes, prepending axes of size 1 with a kernel of 1 if there are fewer."""
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
    """Return the Lines of the forward pass: which inputs each output reads."""
    return [
        line(a.size, a.out, a.stride, a.kernel, -a.before, a.dilation) for a in three(geometry.axes)
    ]


def output_lines(geometry: Geometry) -> list[Fields]:
    """Return the Lines that read the output array itself: one tap, stride 1, no pads."""
    return [line(a.out, a.out, 1, 1, 0, 1) for a in three(geometry.axes)]


def window(lines: Sequence[Fields], array: Layout) -> Fields:
    """Return the fields of a Window over an array.

    An axis of length 1 may have any stride; if the array is a matrix in place, the window gets the
    matrix's leading dimensions instead.
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
