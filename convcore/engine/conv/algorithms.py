"""Convolution algorithms: which kernel computes a pass, in which blocks, with how much memory.

A plan (`problem.PassPlan`) is what an algorithm's `prepare` returns beside its kernel: items of
work, block sizes, workspace.  It follows from the geometry, dtype, memory format and instruction
set, never from the number of threads.  `choose` takes the first entry of
ALGORITHMS, whose order is not the table's, for which neither `impossible` nor `unprofitable`
gives a reason; the reasons of the others are the plan's `refused`,
which `convcore plan` prints.  selection.py has what a user forces or forbids.

Each algorithm has a folder: plan.py says what it can do and how it cuts the work, a .pyx runs that
on all threads, a .c file of microkernels has the inner loops.  Passes are f(orward), i(nput
gradient), w(eight gradient).

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

blocks.py cuts work into pieces that fit the cache, and weight gradients into partial sums;
direct.py is what depthwise and grouped share.

To add an algorithm: a folder whose plan.py ends with an `Algorithm`, and its place in ALGORITHMS.
Compiled: a subclass, in a new .pyx, of a class of _kernel.pyx.  With vectors: a header declares a
table of microkernels and a C file defines it, once an instruction set, as winograd.h and winograd.c
do; microkernels.h and microkernels.c point to it, DECLARED_HEADERS in setup.py names the header.
The tests in tests/engine/conv/algorithms/ then run it by its name.
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

# How good a choice is; the least is taken.
_FORCED, _GOOD, _UNPROFITABLE, _FORBIDDEN, _IMPOSSIBLE = range(5)


def choose(problem: Problem, selection: Selection) -> tuple[Any, PassPlan]:
    """Return the kernel of the algorithm that suits a problem best, and its plan.

    A forced algorithm that does not support the problem is skipped.  A forbidden algorithm is used
    only where no other one supports the problem.  The plan tells
    why each of the others was not taken.  bfloat16 storage is ignored: see `narrowest`.
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
    """Return which of a problem's left array and result may be bfloat16 in memory.

    narrow : which of the two the caller wants in bfloat16.  Storage that the algorithm chosen for
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
    """Return the algorithm that suits a problem best, and the verdicts on all, by name.

    The choice is made as if all arrays were stored in float32.
    """
    problem = problem._replace(narrow_left=False, narrow_output=False)
    candidates = [a for a in ALGORITHMS if problem.pass_name in a.passes]
    verdicts = {a.name: _verdict(a, problem, selection) for a in candidates}
    return min(candidates, key=lambda a: verdicts[a.name][0]), verdicts


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
    if algorithm.rounds and not selection.bfloat16:
        return _FORBIDDEN, "fp32_precision is not 'bf16'"
    if reason := algorithm.unprofitable(problem):
        return _UNPROFITABLE, reason
    return _GOOD, None
