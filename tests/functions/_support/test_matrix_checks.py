"""Checks of matrices, and the error of the first bad one of a batch."""

from __future__ import annotations

import numpy as np
import pytest

import convcore
from convcore.functions._support import matrix_checks as checks


def test_square_matrices_pass_and_others_do_not():
    checks.check_square("linalg.inv", convcore.ones(4, 3, 3))
    for bad, says in (
        (convcore.ones(2, 3), "must be batches of square matrices, but they are 2 by 3"),
        (convcore.ones(3), "must have at least 2 dimensions"),
        (convcore.ones(3, 3).long(), "Expected a floating point or complex tensor"),
        (convcore.ones(3, 3).half(), "Low precision dtypes not supported. Got Half"),
    ):
        with pytest.raises(RuntimeError, match=says):
            checks.check_square("linalg.inv", bad)
    with pytest.raises(TypeError, match="argument 'A'"):
        checks.check_square("linalg.inv", np.ones((2, 2)))
    with pytest.raises(NotImplementedError, match="\"lu_cpu\" not implemented for 'Half'"):
        checks.check_matrix("linalg.lu", convcore.ones(3, 3).half(), kernel="lu_cpu")


def test_first_bad_matrix_is_named():
    checks.raise_first("f", np.zeros(3, int), str)
    with pytest.raises(checks.LinAlgError, match=r"^f: \(Batch element 1\): 7$"):
        checks.raise_first("f", np.array([0, 7, 8]), str)
    with pytest.raises(checks.LinAlgError, match=r"^f: 7$"):
        checks.raise_first("f", np.array(7), str)


def test_each_matrix_has_its_number():
    found = checks.each(lambda matrix: int(matrix.sum()), np.ones((2, 3, 2, 2)))
    assert found.dtype == np.int32
    assert found.tolist() == [[4, 4, 4], [4, 4, 4]]
