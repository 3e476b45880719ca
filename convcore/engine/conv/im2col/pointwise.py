"""Pointwise (1x1) convolution by gemm, with stride 1 and without padding.

The array itself is the matrix of patches.  No patches are gathered, except where contiguous images
are so small that a block spans several.
"""

from __future__ import annotations

from typing import Any

from convcore.engine.conv.im2col.gemm import correlation, is_matrix, wasteful_to_gather
from convcore.engine.conv.im2col.weight import weight_gradient
from convcore.engine.conv.problem import PASSES, WEIGHT_GRAD, Algorithm, PassPlan, Problem


def _impossible(problem: Problem) -> str | None:
    for axis in problem.geometry.axes:
        if axis.kernel != 1:
            return f"a kernel of {axis.kernel}, not 1"
        if axis.stride != 1:
            return f"a stride of {axis.stride}, not 1"
        if axis.before or axis.after:
            return "padding"
    if not is_matrix(problem.left, problem.channels_last):
        return "its array is no matrix as it lies in memory"
    return None


def _prepare(problem: Problem) -> tuple[Any, PassPlan]:
    if problem.pass_name == WEIGHT_GRAD:
        return weight_gradient(problem, "pointwise", direct=True)
    reason = "kernel 1, stride 1, no padding: the input is the matrix of patches"
    return correlation(problem, "pointwise", reason, direct=True)


POINTWISE = Algorithm("pointwise", PASSES, _prepare, _impossible, wasteful_to_gather)
