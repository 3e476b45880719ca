"""SciPy's BLAS is loaded without the rest of scipy.linalg, and nothing tells that it was."""

import pytest

MULTIPLIES = """
import numpy as np
from convcore import engine
a = np.arange(6.0).reshape(2, 3)
assert engine.matmul(a, a.T).tolist() == [[5.0, 14.0], [14.0, 50.0]]
"""

IS_WHOLE = """
import scipy.linalg
from scipy.linalg import cython_blas
assert scipy.linalg.cython_blas is cython_blas is sys.modules["scipy.linalg.cython_blas"]
assert "dgemm" in cython_blas.__pyx_capi__
assert scipy.linalg.solve(np.eye(2), np.ones(2)).tolist() == [1.0, 1.0]
"""


@pytest.mark.subprocess
def test_kernels_load_no_package_that_they_do_not_need(run_child):
    run_child(f"import sys{MULTIPLIES}assert 'scipy.linalg' not in sys.modules{IS_WHOLE}")


NOT_FOUND = """
import sys
from importlib.machinery import PathFinder
find = PathFinder.find_spec
def find_with_package(name, *rest, **options):
    alone = "cython_blas" in name and "scipy.linalg" not in sys.modules
    return None if alone else find(name, *rest, **options)
PathFinder.find_spec = find_with_package
"""


@pytest.mark.subprocess
@pytest.mark.parametrize(
    "before", ["import sys, scipy.linalg", NOT_FOUND], ids=["loaded", "frozen"]
)
def test_kernels_take_it_from_its_package_otherwise(before, run_child):
    run_child(f"{before}{MULTIPLIES}assert 'scipy.linalg' in sys.modules{IS_WHOLE}")
