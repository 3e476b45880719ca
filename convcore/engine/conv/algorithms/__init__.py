"""The algorithms of the three maps, one a file, and the choice among them.

problem.py says what an algorithm is.  blocks.py cuts work into pieces that fit the cache;
gemm.py and gemm_weight_gradient.py are gemms that several algorithms share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from convcore.engine.conv.algorithms.depthwise import DEPTHWISE
from convcore.engine.conv.algorithms.few_channels import FEW_CHANNELS
from convcore.engine.conv.algorithms.gemm_col2im import SCATTER
from convcore.engine.conv.algorithms.grouped import GROUPED
from convcore.engine.conv.algorithms.im2col import IM2COL
from convcore.engine.conv.algorithms.indirect import INDIRECT
from convcore.engine.conv.algorithms.pointwise import POINTWISE
from convcore.engine.conv.algorithms.problem import Algorithm, PassPlan, Problem
from convcore.engine.conv.algorithms.stride_decomposition import PHASES
from convcore.engine.conv.algorithms.winograd import WINOGRAD

if TYPE_CHECKING:
    from convcore.engine.conv.algorithms.selection import Selection

# In order of preference: the first that can do a problem, and finds nothing against it, does it.
# im2col takes every forward map and weight gradient, scatter every input gradient.
ALGORITHMS = (
    DEPTHWISE,
    GROUPED,
    FEW_CHANNELS,
    WINOGRAD,
    INDIRECT,
    POINTWISE,
    IM2COL,
    PHASES,
    SCATTER,
)
NAMES = tuple(algorithm.name for algorithm in ALGORITHMS)

# How good a choice is; the least is taken.
_FORCED, _GOOD, _UNPROFITABLE, _FORBIDDEN, _IMPOSSIBLE = range(5)


def choose(problem: Problem, selection: Selection) -> tuple[Any, PassPlan]:
    """Return the kernel of the algorithm that suits a problem best, and its plan.

    A forced algorithm that cannot do the problem is passed over, and so is one that finds nothing
    against it but is forbidden; where nothing else can do it, a forbidden one does.  The plan tells
    why each of the others was not taken.
    """
    candidates = [a for a in ALGORITHMS if problem.pass_name in a.passes]
    verdicts = {a.name: _verdict(a, problem, selection) for a in candidates}
    chosen = min(candidates, key=lambda a: verdicts[a.name][0])
    refused = {
        name: reason or f"{chosen.name} comes before it"
        for name, (_, reason) in verdicts.items()
        if name != chosen.name
    }
    if selection.algorithm is not None and selection.algorithm not in verdicts:
        refused[selection.algorithm] = f"it computes no {problem.pass_name}"
    kernel, plan = chosen.prepare(problem)
    return kernel, plan._replace(refused=tuple(refused.items()))


def _verdict(
    algorithm: Algorithm, problem: Problem, selection: Selection
) -> tuple[int, str | None]:
    """Return how good an algorithm is for a problem, and what is against it."""
    if reason := algorithm.impossible(problem):
        return _IMPOSSIBLE, reason
    if algorithm.name in selection.forbidden:
        return _FORBIDDEN, "forbidden"
    if selection.strict and not algorithm.direct:
        return _FORBIDDEN, "strict mode"
    if algorithm.name == selection.algorithm:
        return _FORCED, None
    if reason := algorithm.unprofitable(problem):
        return _UNPROFITABLE, reason
    return _GOOD, None
