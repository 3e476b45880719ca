"""Stride decomposition: an input gradient of stride S as S convolutions of stride 1 per axis.

Each of them is a phase: the input's elements with one remainder modulo S.

Input i = r + S*j is under tap k of output (i + before - k*D) / S where that is an integer.  For a
given remainder r this holds for every p-th tap, p = S / gcd(S, D), and from one of them to the next
the output moves back by D / gcd(S, D).  So, taken from last to first, they are the taps of a
convolution of stride 1 and dilation D / gcd(S, D) over grad_output, and no product has one of the
zeros that the textbook form would insert between the elements of grad_output as a factor.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from convcore.engine.geometry import Axis


class Phase(NamedTuple):
    """One phase of the stride decomposition on one axis: a remainder modulo the stride.

    Output j of the phase is input ``start + j*stride`` of the axis; its tap t reads grad_output at
    ``j + first + t*step`` and is the kernel's tap ``tap - t*period``.
    """

    start: int
    stride: int
    outs: int
    taps: int
    first: int
    step: int
    tap: int
    period: int


def axis_phases(axis: Axis) -> list[Phase]:
    """Return the phases of one axis; an empty list if the input is empty."""
    common = math.gcd(axis.stride, axis.dilation)
    period = axis.stride // common
    phases = []
    for r in range(min(axis.stride, axis.size)):
        matching = (
            k
            for k in range(min(period, axis.kernel))
            if (r + axis.before - k * axis.dilation) % axis.stride == 0
        )
        tap = next(matching, None)
        taps = 0 if tap is None else -(-(axis.kernel - tap) // period)
        last = 0 if tap is None else tap + (taps - 1) * period
        phases.append(
            Phase(
                start=r,
                stride=axis.stride,
                outs=-(-(axis.size - r) // axis.stride),
                taps=taps,
                first=(r + axis.before - last * axis.dilation) // axis.stride,
                step=axis.dilation // common,
                tap=last,
                period=period,
            )
        )
    return phases
