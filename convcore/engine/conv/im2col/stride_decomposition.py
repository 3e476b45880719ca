"""Input gradient by stride decomposition: S convolutions of stride 1 per axis, by im2col.

No multiplication is by a zero inserted between the elements of grad_output: see
engine/conv/stride_phases.py.
"""

from __future__ import annotations

from typing import Any

from convcore.engine.conv.im2col.gemm import (
    correlation,
    n_phases,
    too_many_phases,
    wasteful_to_gather,
)
from convcore.engine.conv.problem import INPUT_GRAD, Algorithm, PassPlan, Problem

_NAME = "stride_decomposition"


def _impossible(problem: Problem) -> str | None:
    if n_phases(problem.geometry) <= 1:
        return "a stride of 1 has one phase"
    return too_many_phases(problem.geometry)


def _prepare(problem: Problem) -> tuple[Any, PassPlan]:
    phases = n_phases(problem.geometry)
    reason = f"{phases} remainders of the stride, each a convolution of stride 1"
    return correlation(problem, _NAME, reason)


STRIDE_DECOMPOSITION = Algorithm(_NAME, (INPUT_GRAD,), _prepare, _impossible, wasteful_to_gather)
