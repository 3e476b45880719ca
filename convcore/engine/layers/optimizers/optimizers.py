"""Optimizer steps (SGD, Adam, RMSprop) in place: each parameter is read and written once.

A rule's formula is in optimizers.h.  What the kernels do not take as it lies
is copied, stepped and written back: a parameter with gaps in memory, float16 in float32, and what
is of another dtype than the parameter; a complex parameter is twice as many real ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from convcore.engine.layers.elementwise.elementwise import laid_out_like
from convcore.engine.layers.images import FLOATS
from convcore.engine.layers.optimizers import _optimizers
from convcore.engine.runtime.layout import is_dense, real_parts

Array = np.ndarray[Any, Any]

# Flags of a step: engine/layers/microkernels.h.
DECAYS = 1
VELOCITY, FIRST, NESTEROV = 2, 4, 8
AMSGRAD = 2
CENTERED, MOMENTUM = 2, 4

# How long an element takes in multiply-adds, which decides on the number of threads: it is memory
# that takes long, and less of it where the state is smaller.
_WORK = 8.0


class Step(NamedTuple):
    """One parameter's step.

    ``rule`` is 'sgd', 'adam' or 'rmsprop'; ``arrays`` the parameter, its gradient and the state, of
    one shape; ``settings`` and ``flags`` are the rule's, in the order of
    engine/layers/microkernels.h.
    """

    rule: str
    arrays: Sequence[Array]
    settings: Sequence[float]
    flags: int


def take(steps: Sequence[Step]) -> None:
    """Take steps: change parameters and states, not the gradients.

    Parameters
    ----------
    steps : sequence of Step
        Parameters of float16, float32, float64, complex64 or complex128, in any layout. Those that
        share memory are stepped one after the other.

    Raises
    ------
    BufferError
        An array to be changed is read-only; nothing has been changed then.
    TypeError
        The parameter is complex, and something that goes with it is not; nothing has been changed.

    Notes
    -----
    Elements are independent of each other, so the bits do not depend on the number of threads.
    """
    rows, staged = [], []
    for step in steps:
        originals = step.arrays
        if originals[0].dtype.kind == "c":
            originals = [_of_reals(array) for array in originals]
        arrays = _laid_out(originals)
        rows.append((_optimizers.RULE_NUMBERS[step.rule], arrays, step.settings, step.flags))
        if arrays is not originals:
            staged.append((originals, arrays))
    _optimizers.step(rows, _WORK)
    if staged:  # else nothing that takes memory may follow the step
        _write_back(staged)


def _write_back(staged: list[tuple[Sequence[Array], Sequence[Array]]]) -> None:
    """Copy what was stepped in copies into the arrays that it was copied from."""
    for originals, arrays in staged:
        for number, (original, array) in enumerate(zip(originals, arrays, strict=True)):
            if number != 1 and not np.may_share_memory(original, array):
                original[...] = array


def _laid_out(arrays: Sequence[Array]) -> Sequence[Array]:
    """Return the arrays as the kernels take them: themselves, views or copies."""
    first = arrays[0]
    strides = first.strides
    if (
        first.dtype in FLOATS
        and all(
            array.strides == strides and array.dtype == first.dtype and array.flags.aligned
            for array in arrays
        )
        and (first.flags.c_contiguous or is_dense(first))
    ):
        return arrays
    dtype = first.dtype if first.dtype in FLOATS else np.dtype("f4")
    dense = is_dense(first)
    model = np.empty_like(first, dtype) if dense else np.empty(first.shape, dtype)
    return [laid_out_like(array, model) for array in arrays]


def _of_reals(array: Array) -> Array:
    """Return a view of what goes with a complex parameter, twice as many real numbers."""
    if array.dtype.kind != "c":
        raise TypeError(f"what goes with a complex parameter must be complex, got {array.dtype}")
    return real_parts(array)
