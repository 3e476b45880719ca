"""Choose the algorithm of a convolution pass; the table of all algorithms.

A plan (`problem.PassPlan`) is returned by an algorithm's `prepare` together with its kernel: work
items, block sizes, workspace.  It depends on the geometry, dtype, memory format and instruction
set, never on the number of threads.  `choose` takes the first entry of ALGORITHMS (whose order
differs from the table below) for which neither `impossible` nor `unprofitable` returns a reason.
The reasons of the other algorithms are the plan's `refused`, which `convcore plan` prints.
selection.py has the algorithms that a user forces or forbids.

Each algorithm has a folder: plan.py says which problems it supports and how it cuts the work, a
.pyx file runs the work items on all threads, a .c file has the microkernels (inner loops).  Passes:
f(orward), i(nput gradient), w(eight gradient).

====================  ======  ====================  ======================  =======================
algorithm             passes  plan                  kernel                  microkernels
====================  ======  ====================  ======================  =======================
bfloat16              f i w   bfloat16/             indirect's              bfloat16.c
depthwise             f i w   depthwise/            _depthwise_float        depthwise.c
..., any dtype        f i w   im2col/gemm (f i),    _im2col_gemm,           none
                              depthwise/            _depthwise
grouped               f i w   grouped/              _grouped                grouped.c
few_channels          f i w   few_channels/         _few_channels,          few_channels.c
                                                    ..._input, ..._weight
winograd              f i w   winograd/             _winograd (f i),        winograd.c and
                                                    _winograd_weight        conv/packed_gemm.h
indirect              f i w   indirect/             _indirect (f i),        indirect.c
                              correlation, weight   _indirect_weight
folded_stride         f i w   indirect/             the same                the same
im2col, pointwise     f i w   im2col/gemm (f i),    _im2col_gemm (f i),     none: BLAS
                              weight                _im2col_gemm_weight
stride_decomposition  i       im2col/gemm           _im2col_gemm            none: BLAS
gemm_col2im           i       im2col/gemm_col2im    _gemm_col2im            none: BLAS
====================  ======  ====================  ======================  =======================

blocks.py cuts work into blocks that fit the cache, and weight gradients into partial sums;
direct.py has the code shared by depthwise and grouped.

To add an algorithm: create a folder whose plan.py ends with an `Algorithm`, and list it in
ALGORITHMS.  A compiled one needs a .pyx with a subclass of one in _kernel.pyx.  A vectorised one
needs a header that declares a table of microkernels and a C file that defines it, compiled once per
instruction set (see winograd.h and winograd.c).  microkernels.h and microkernels.c point to it;
DECLARED_HEADERS in setup.py lists it.  tests/engine/conv/algorithms/ then tests it by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from convcore.engine.conv.bfloat16.plan import BFLOAT16
from convcore.engine.conv.depthwise.plan import DEPTHWISE
from convcore.engine.conv.few_channels.plan import FEW_CHANNELS
from convcore.engine.conv.grouped.plan import GROUPED
from convcore.engine.conv.im2col.gemm_col2im import GEMM_COL2IM
from convcore.engine.conv.im2col.plan import IM2COL
from convcore.engine.conv.im2col.pointwise import POINTWISE
from convcore.engine.conv.im2col.stride_decomposition import STRIDE_DECOMPOSITION
from convcore.engine.conv.indirect.folded_stride import FOLDED_STRIDE
from convcore.engine.conv.indirect.plan import INDIRECT
from convcore.engine.conv.problem import Algorithm, PassPlan, Problem
from convcore.engine.conv.winograd.plan import WINOGRAD

if TYPE_CHECKING:
    from convcore.engine.conv.selection import Selection

# In order of preference: the first that supports a problem and is not unprofitable is used.
# im2col takes every forward pass and weight gradient, gemm_col2im every input gradient.
ALGORITHMS = (
    BFLOAT16,
    DEPTHWISE,
    GROUPED,
    FOLDED_STRIDE,
    FEW_CHANNELS,
    WINOGRAD,
    INDIRECT,
    POINTWISE,
    IM2COL,
    STRIDE_DECOMPOSITION,
    GEMM_COL2IM,
)
NAMES = tuple(algorithm.name for algorithm in ALGORITHMS)

# Ranks of an algorithm for a problem; the lowest is chosen.
_FORCED, _GOOD, _UNPROFITABLE, _FORBIDDEN, _IMPOSSIBLE = range(5)


def choose(problem: Problem, selection: Selection) -> tuple[Any, PassPlan]:
    """Return the kernel and the plan of the best algorithm for a problem.

    A forced algorithm that does not support the problem is skipped.  A forbidden algorithm is used
    only if no other algorithm supports the problem.  The plan's `refused` lists why each of the
    other algorithms was not chosen.  bfloat16 storage is ignored: see `narrowest`.
    """
    chosen, verdicts = _ranked(problem, selection)
    refused = {
        name: reason or f"{chosen.name} comes before it"
        for name, (_, reason) in verdicts.items()
        if name != chosen.name
    }
    if selection.algorithm is not None and selection.algorithm not in verdicts:
        refused[selection.algorithm] = f"it computes no {problem.pass_name}"
    kernel, plan = chosen.prepare(problem)
    return kernel, plan._replace(refused=tuple(refused.items()))


def narrowest(
    problem: Problem, selection: Selection, narrow: tuple[bool, bool]
) -> tuple[bool, bool]:
    """Return (left, output): which of a problem's arrays may be stored in bfloat16.

    narrow : the arrays that the caller wants in bfloat16.  Storage that the algorithm chosen for
    float32 does not support stays float32, so that no slower algorithm is chosen.
    """
    chosen, _ = _ranked(problem, selection)
    left, output = narrow
    for each in ((left, output), (left, False), (False, output)):
        asked = problem._replace(narrow_left=each[0], narrow_output=each[1])
        if any(each) and not (chosen.not_narrow(asked) or chosen.impossible(asked)):
            return each
    return False, False


def _ranked(
    problem: Problem, selection: Selection
) -> tuple[Algorithm, dict[str, tuple[int, str | None]]]:
    """Return the best algorithm for a problem, and the (rank, reason) of every algorithm by name.

    The choice is made as if all arrays were stored in float32.
    """
    problem = problem._replace(narrow_left=False, narrow_output=False)
    candidates = [a for a in ALGORITHMS if problem.pass_name in a.passes]
    verdicts = {a.name: _verdict(a, problem, selection) for a in candidates}
    return min(candidates, key=lambda a: verdicts[a.name][0]), verdicts


def _verdict(
    algorithm: Algorithm, problem: Problem, selection: Selection
) -> tuple[int, str | None]:
    """Return (rank, reason against it or None) of an algorithm for a problem."""
    if reason := algorithm.impossible(problem):
        return _IMPOSSIBLE, reason
    if algorithm.name in selection.forbidden:
        return _FORBIDDEN, "forbidden"
    if selection.strict and not algorithm.direct:
        return _FORBIDDEN, "strict mode"
    if algorithm.name == selection.algorithm:
        return _FORCED, None
    if algorithm.rounds and not selection.bfloat16:
        return _FORBIDDEN, "fp32_precision is not 'bf16'"
    if reason := algorithm.unprofitable(problem):
        return _UNPROFITABLE, reason
    return _GOOD, None
