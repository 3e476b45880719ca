"""im2col: patches gathered part by part into cache, each part multiplied by gemm at once.

It computes every forward map and weight gradient, and the input gradients of stride 1: those are
correlations of grad_output with the rotated kernel.

References
----------
K. Chellapilla, S. Puri, P. Simard, High performance convolutional neural networks for document
processing (2006), section 2, for the product of a matrix of patches; here block by block.
"""

from __future__ import annotations

from typing import Any

from convcore.engine.algorithms.correlation import correlation, n_phases, wasteful_to_gather
from convcore.engine.algorithms.problem import (
    INPUT_GRAD,
    MAPS,
    WEIGHT_GRAD,
    Algorithm,
    MapPlan,
    Problem,
)
from convcore.engine.algorithms.weight_gradient import weight_gradient


def _impossible(problem: Problem) -> str | None:
    if problem.map == INPUT_GRAD and (phases := n_phases(problem.geometry)) > 1:
        return f"{phases} remainders of the stride: not one correlation, but so many"
    return None


def _unprofitable(problem: Problem) -> str | None:
    return wasteful_to_gather(problem) if problem.map == INPUT_GRAD else None


def _prepare(problem: Problem) -> tuple[Any, MapPlan]:
    if problem.map == WEIGHT_GRAD:
        return weight_gradient(problem, "im2col")
    kernel, plan = correlation(problem, "im2col", "")
    kib = -(-plan.patches * plan.itemsize >> 10)
    return kernel, plan._replace(reason=f"parts of {kib} KiB of patches, multiplied in cache")


IM2COL = Algorithm("im2col", MAPS, _prepare, _impossible, _unprofitable)
