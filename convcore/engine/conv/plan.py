"""Plans of a convolution's three passes: algorithm, block sizes, memory, and the reasons."""

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
    """Return the plans of a convolution of dense arrays and its two gradients.

    The passes follow these plans under the current selection (`convcore.backends.conv`); they do
    not depend on the number of threads.

    Parameters
    ----------
    geometry : Geometry
    dtype : float32, float64, complex64 or complex128
    channels_last : bool
        The memory format of the arrays and of the result.

    Returns
    -------
    Plan
        One PassPlan per pass: blocks in pixels and channels, memory in elements and in bytes, and
        why each algorithm was chosen or rejected.

    Raises
    ------
    TypeError
        geometry is not a Geometry, or dtype none of the above.
    ValueError
        A size exceeds what BLAS can take; the passes would raise the same.

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
