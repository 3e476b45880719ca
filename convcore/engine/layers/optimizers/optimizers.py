"""Optimizer steps (SGD, Adam, RMSprop) in place: each parameter is read and written once.

The rules' formulas are in optimizers.h.  Arrays that the kernels cannot use are copied, updated and
written back: parameters with gaps in memory, float16 (as float32), and state of another dtype than
the parameter.  A complex parameter is treated as twice as many real ones.
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

# Flags of an update, as in engine/layers/microkernels.h.
DECAYS = 1
VELOCITY, FIRST, NESTEROV = 2, 4, 8
AMSGRAD = 2
CENTERED, MOMENTUM = 2, 4

# Multiply-adds that take as long as one element, for the number of threads: updates are limited by
# memory, and read less of it if the state is smaller.
_WORK = 8.0


class Step(NamedTuple):
    """The update of one parameter.

    ``rule`` is 'sgd', 'adam' or 'rmsprop'; ``arrays`` the parameter, its gradient and the state, of
    one shape; ``settings`` and ``flags`` are the rule's, in the order of
    engine/layers/microkernels.h.
    """

    rule: str
    arrays: Sequence[Array]
    settings: Sequence[float]
    flags: int


def take(steps: Sequence[Step]) -> None:
    """Update parameters and states in place; gradients do not change.

    Parameters
    ----------
    steps : sequence of Step
        Parameters of float16, float32, float64, complex64 or complex128, in any layout.  Those that
        share memory are updated one after another.

    Raises
    ------
    BufferError
        An array to be changed is read-only; nothing has been changed.
    TypeError
        The parameter is complex, but its gradient or state is not; nothing has been changed.

    Notes
    -----
    Elements are independent, so the bits do not depend on the number of threads.
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
    if staged:  # no allocation may follow the update otherwise
        _write_back(staged)


def _write_back(staged: list[tuple[Sequence[Array], Sequence[Array]]]) -> None:
    """Copy updated copies back into their original arrays, except the gradients."""
    for originals, arrays in staged:
        for number, (original, array) in enumerate(zip(originals, arrays, strict=True)):
            if number != 1 and not np.may_share_memory(original, array):
                original[...] = array


def _laid_out(arrays: Sequence[Array]) -> Sequence[Array]:
    """Return the arrays in a layout that the kernels accept: themselves, views or copies."""
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
    """Return a real view, with twice the elements, of a complex parameter's gradient or state."""
    if array.dtype.kind != "c":
        raise TypeError(f"what goes with a complex parameter must be complex, got {array.dtype}")
    return real_parts(array)
