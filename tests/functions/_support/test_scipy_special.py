"""SciPy's functions keep dtypes, and are loaded by the first call."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy import special

from convcore.functions._support.scipy_special import of_one, of_two
from convcore.functions.elementwise.arithmetic import compute


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_results_have_the_dtype_of_the_arrays(dtype):
    x, y = np.array([0.0, 0.5, 2.0], dtype), np.array([[1.0], [0.25]], dtype)
    one, two = of_one("erfc")(x), compute(of_two("xlogy"), x, y)
    assert (one.dtype, two.dtype) == (x.dtype, x.dtype)
    wide = x.astype(float), y.astype(float)
    tolerance = 4 * float(np.finfo(dtype).eps)
    np.testing.assert_allclose(one, special.erfc(wide[0]), rtol=tolerance)
    np.testing.assert_allclose(two, special.xlogy(*wide), rtol=tolerance)


def test_a_number_joins_an_array():
    found = compute(of_two("xlogy"), np.array([2.0, 4.0]), np.e)
    np.testing.assert_allclose(found, [2.0, 4.0])


def test_the_first_call_loads_scipys_functions():
    program = """
import sys
import convcore
assert "scipy.special" not in sys.modules
convcore.lgamma(convcore.ones(1))
assert "scipy.special" in sys.modules
"""
    subprocess.run([sys.executable, "-P", "-c", program], check=True)
