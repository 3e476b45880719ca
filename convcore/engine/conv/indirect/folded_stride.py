"""Fold the last axis's stride into the channels: filter banks and patch embeddings.

Where a kernel has S times K taps and a stride of S, input S*j + r is pixel j of channel r, under a
kernel of K taps and a stride of 1.  No data moves: the same memory gets other axes.  Few input
channels become many, which indirect convolution multiplies in place (plan.py).

    contiguous     (N, C, H, S*W) is (N, S, C, H, W): C is the depth, under a kernel of C slices
    channels_last  (N, H, S*W, C) is (N, S*C, H, W)

Input, weight and their gradients are then channels_last; the output's format does not change.
"""

from __future__ import annotations

from typing import Any

from convcore.engine.conv.direct import is_dense
from convcore.engine.conv.few_channels.plan import MOST_CHANNELS
from convcore.engine.conv.indirect.plan import INDIRECT
from convcore.engine.conv.problem import (
    FORWARD,
    INPUT_GRAD,
    PASSES,
    WEIGHT_GRAD,
    Algorithm,
    PassPlan,
    Problem,
    dense_problem,
    shapes_of,
)
from convcore.engine.geometry import Axis, Geometry

_NAME = "folded_stride"

# Minimum products per output for it to pay off; few_channels is as fast for a stem of 4 x 4 pixels.
LEAST_COLUMNS = 256


def _impossible(problem: Problem) -> str | None:
    g = problem.geometry
    last = g.axes[-1]
    if last.stride == 1:
        return "a stride of 1: nothing to fold"
    if last.dilation != 1 or any(n % last.stride for n in (last.kernel, last.size, last.before)):
        return f"its last axis is not whole strides of {last.stride}"
    if g.groups > 1:
        return "it knows one group only"
    if 0 in g.input_shape or g.n * g.pixels <= 0:
        return "an empty array"
    if not problem.channels_last and g.c_in > 1:
        if g.rank == 3:
            return "no axis is left for the channels"
        if problem.pass_name == INPUT_GRAD:
            return "each channel would be multiplied with the weights of all"
    dense = dense_problem(problem.pass_name, g, problem.dtype, problem.channels_last)
    folded = [problem.left] if problem.pass_name != INPUT_GRAD else []
    wanted = [dense.left] if folded else []
    if problem.pass_name != WEIGHT_GRAD:
        folded.append(problem.right)
        wanted.append(dense.right)
    if not all(map(is_dense, folded, wanted)):
        return "an array is not dense in the result's memory format"
    return INDIRECT.impossible(_folded(problem))


def _unprofitable(problem: Problem) -> str | None:
    g = problem.geometry
    if g.c_in > MOST_CHANNELS:
        return f"{g.c_in} input channels: enough without the stride"
    if g.columns < LEAST_COLUMNS:
        return f"{g.columns} products of an output: too few to gain"
    return None


def _folded(problem: Problem) -> Problem:
    """Return the same problem with the stride of the last axis folded into the channels."""
    g, last = problem.geometry, problem.geometry.axes[-1]
    stride = last.stride
    column = Axis(
        last.size // stride,
        last.kernel // stride,
        before=last.before // stride,
        after=last.after // stride,
    )
    among = g.c_in if problem.channels_last else 1
    depth = () if among == g.c_in else (Axis(g.c_in, g.c_in),)
    axes = (*depth, *g.axes[:-1], column)
    folded = Geometry(g.n, stride * among, g.c_out, 1, axes)
    arrays = shapes_of(folded, True)
    forward = problem.pass_name == FORWARD
    return problem._replace(
        geometry=folded,
        left=problem.left if problem.pass_name == INPUT_GRAD else arrays[INPUT_GRAD],
        right=problem.right if problem.pass_name == WEIGHT_GRAD else arrays[WEIGHT_GRAD],
        channels_last=problem.channels_last if forward else True,
    )


def _prepare(problem: Problem) -> tuple[Any, PassPlan]:
    folded = _folded(problem)
    kernel, plan = INDIRECT.prepare(folded)
    # The bias of an input gradient is per original channel: the kernel cannot add it.
    ends = plan.supports_epilogue and problem.pass_name == FORWARD
    g = folded.geometry
    return kernel, plan._replace(
        algorithm=_NAME,
        reason=f"the stride makes {problem.c} input channels {g.c_in}: {plan.reason}",
        supports_epilogue=ends,
    )


FOLDED_STRIDE = Algorithm(_NAME, PASSES, _prepare, _impossible, _unprofitable)
