"""The plans of a convolution's three passes: algorithm, blocks, memory, and why."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from convcore.engine.conv.algorithms import choose
from convcore.engine.conv.problem import PASSES, PassPlan, dense_problem
from convcore.engine.conv.selection import current
from convcore.engine.geometry import Geometry, shown
from convcore.engine.runtime.checks import check_dtype


class Plan(NamedTuple):
    """The plans of a convolution's three passes."""

    forward: PassPlan
    input_grad: PassPlan
    weight_grad: PassPlan


def plan_conv(geometry: Geometry, dtype: np.dtype | str, channels_last: bool = False) -> Plan:
    """Return how a convolution of dense arrays and its two gradients are computed.

    The passes follow it under the selection in force (`convcore.backends.conv`); the number of
    threads changes nothing.

    Parameters
    ----------
    geometry : Geometry
    dtype : float32, float64, complex64 or complex128
    channels_last : bool
        The memory format of the arrays and of the result.

    Returns
    -------
    Plan
        One PassPlan a pass: blocks in pixels and channels, memory in elements and in bytes, and why
        each algorithm was taken or not.

    Raises
    ------
    TypeError
        geometry is no Geometry, or dtype none of the above.
    ValueError
        A size that BLAS cannot take, as the passes would raise.

    Examples
    --------
    >>> from convcore.engine import make_geometry
    >>> geometry = make_geometry((8, 64, 56, 56), (64, 64, 3, 3), padding=1)
    >>> plan_conv(geometry, "float64").forward.algorithm
    'im2col'
    """
    if not isinstance(geometry, Geometry):
        raise TypeError(f"geometry must be a Geometry, got {shown(geometry)}")
    dtype = np.dtype(dtype)
    check_dtype("dtype", dtype)
    return Plan(
        *(choose(dense_problem(p, geometry, dtype, channels_last), current())[1] for p in PASSES)
    )
