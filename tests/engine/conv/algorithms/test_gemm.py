"""Forward pass and input gradient by gemm: which arrays it takes in place, and its phases."""

from __future__ import annotations

import numpy as np
import pytest

from convcore.engine.conv.algorithms import choose
from convcore.engine.conv.algorithms.problem import Problem
from convcore.engine.conv.algorithms.selection import selection_of
from convcore.engine.geometry import make_geometry
from convcore.engine.runtime.layout import Layout, dense


def test_leading_dimension_beyond_blas_integers_is_an_error_not_a_wrap():
    # Two images of one pixel, 2**31 + 64 elements apart: a matrix in place that BLAS cannot take.
    g = make_geometry((2, 16, 1, 1), (1, 16, 1, 1))
    single = np.dtype("float32")
    far = Layout((2, 16, 1, 1, 1), (2**31 + 64, 1, 16, 16, 16))
    near = dense((1, 16, 1, 1, 1), True)
    blas = selection_of("pointwise")
    with pytest.raises(ValueError, match=str(2**31 + 64)):
        choose(Problem("forward", g, single, far, near, True), blas)
    gy = dense((2, 1, 1, 1, 1), True)
    with pytest.raises(ValueError, match=str(2**31 + 64)):
        choose(Problem("weight_grad", g, single, far, gy, True), blas)
