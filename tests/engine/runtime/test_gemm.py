"""The one file that touches BLAS: row-major, both operands either way up, alpha and beta."""

import numpy as np
import pytest
from draws import numbers

from convcore.engine.conv.im2col._im2col_gemm import Correlation
from convcore.engine.runtime._gemm import gemm_arrays

KINDS = {
    "float32": "float",
    "float64": "double",
    "complex64": "float complex",
    "complex128": "double complex",
}
M, N, K = 5, 7, 3


def operands(rng, dtype, trans_a, trans_b):
    """Return a, b and c, each with rows further apart than they are long."""
    shapes = (K, M) if trans_a else (M, K), (N, K) if trans_b else (K, N), (M, N)
    return [numbers(rng, (rows, columns + 2), dtype)[:, :columns] for rows, columns in shapes]


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize(("alpha", "beta"), [(1, 0), (2.5, -0.5)])
def test_gemm_is_alpha_a_b_plus_beta_c(rng, dtype, trans_a, trans_b, alpha, beta):
    a, b, c = operands(rng, dtype, trans_a, trans_b)
    left, right = (a.T if trans_a else a), (b.T if trans_b else b)
    exact = alpha * np.einsum("mk,kn->mn", left, right) + beta * c
    gemm_arrays[KINDS[dtype]](alpha, a, b, beta, c, trans_a, trans_b)
    np.testing.assert_allclose(c, exact, rtol=0, atol=50 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", KINDS)
def test_gemm_with_beta_zero_does_not_read_c(rng, dtype):
    a, b, c = operands(rng, dtype, False, False)
    c[...] = np.nan
    gemm_arrays[KINDS[dtype]](1, a, b, 0, c)
    assert np.isfinite(c).all()


def test_gemm_leaves_what_lies_between_rows(rng):
    a, b, _ = operands(rng, "float64", False, False)
    c = np.full((M, N + 2), 9.0)
    gemm_arrays["double"](1.0, a, b, 0.0, c[:, :N])
    assert (c[:, N:] == 9).all()


@pytest.mark.skipif(np.iinfo(np.intc).bits != 32, reason="BLAS's integers hold any size here")
def test_size_beyond_blas_integers_is_an_error_not_a_wrap():
    with pytest.raises(ValueError, match=rf"{2**31} elements.* at most {2**31 - 1}"):
        Correlation({"items": 0, "work": 0}, [], "f", 2**31)
