"""What will be done: the plans of a convolution's three maps, from geometry, dtype and format."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from convcore.engine.conv.algorithms import choose
from convcore.engine.conv.algorithms.problem import PASSES, PassPlan, dense_problem
from convcore.engine.conv.algorithms.selection import current
from convcore.engine.geometry import Geometry, shown
from convcore.engine.runtime.checks import check_dtype

__all__ = ["PassPlan", "Plan", "plan_conv"]


class Plan(NamedTuple):
    """The plans of a convolution's three maps."""

    forward: PassPlan
    input_grad: PassPlan
    weight_grad: PassPlan


def plan_conv(geometry: Geometry, dtype: np.dtype | str, channels_last: bool = False) -> Plan:
    """Return how a convolution of dense arrays and its two gradients are computed.

    It is what the three maps do under the selection in force (`convcore.backends.conv`), and never
    depends on the number of threads.

    Parameters
    ----------
    geometry : Geometry
    dtype : float32, float64, complex64 or complex128
    channels_last : bool
        The memory format of the arrays and of the result.

    Returns
    -------
    Plan
        One PassPlan a map: blocks in pixels and channels, memory in elements and in bytes, and why
        each algorithm was taken or not.

    Raises
    ------
    TypeError
        geometry is no Geometry, or dtype none of the above.
    ValueError
        A size that BLAS cannot take, as the maps would raise.

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
        *(choose(dense_problem(m, geometry, dtype, channels_last), current())[1] for m in PASSES)
    )
