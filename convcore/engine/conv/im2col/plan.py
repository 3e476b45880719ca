"""im2col and gemm: gather patches part by part into cache; multiply each part by gemm at once.

It computes every forward pass and weight gradient, and input gradients of stride 1, which are
correlations of grad_output with the rotated kernel.

References
----------
K. Chellapilla, S. Puri, P. Simard, High performance convolutional neural networks for document
processing (2006), section 2, for the product of a matrix of patches; here block by block.
"""

from __future__ import annotations

from typing import Any

from convcore.engine.conv.im2col.gemm import correlation, n_phases, wasteful_to_gather
from convcore.engine.conv.im2col.weight import weight_gradient
from convcore.engine.conv.problem import (
    INPUT_GRAD,
    PASSES,
    WEIGHT_GRAD,
    Algorithm,
    PassPlan,
    Problem,
)


def _impossible(problem: Problem) -> str | None:
    if problem.pass_name == INPUT_GRAD and (phases := n_phases(problem.geometry)) > 1:
        return f"{phases} remainders of the stride: not one correlation, but so many"
    return None


def _prepare(problem: Problem) -> tuple[Any, PassPlan]:
    if problem.pass_name == WEIGHT_GRAD:
        return weight_gradient(problem, "im2col")
    kernel, plan = correlation(problem, "im2col", "")
    kib = -(-plan.patches * plan.itemsize >> 10)
    return kernel, plan._replace(reason=f"parts of {kib} KiB of patches, multiplied in cache")


IM2COL = Algorithm("im2col", PASSES, _prepare, _impossible, wasteful_to_gather)
