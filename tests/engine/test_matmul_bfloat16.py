"""Matrix products with factors rounded to bfloat16: every layout, and where BLAS is left to it."""

import numpy as np
import pytest

from convcore import engine
from convcore.backends import conv, mkldnn
from convcore.engine import matmul_bfloat16, reference
from convcore.engine.runtime import _isa


@pytest.fixture
def allowed(monkeypatch):
    """Allow products in bfloat16, where they are emulated too."""
    monkeypatch.setattr(_isa, "bfloat16_is_emulated", lambda: False)
    before = mkldnn.matmul.fp32_precision
    mkldnn.matmul.fp32_precision = "bf16"
    yield
    mkldnn.matmul.fp32_precision = before


def laid(array, by_columns, gap=0):
    """Return the matrix stored by rows or by columns, lines `gap` elements apart."""
    stored = array.T if by_columns else array
    wide = np.zeros((stored.shape[0], stored.shape[1] + gap), "f4")
    wide[:, : stored.shape[1]] = stored
    view = wide[:, : stored.shape[1]]
    return view.T if by_columns else view


@pytest.mark.parametrize("gap", [0, 5])
@pytest.mark.parametrize("b_by_columns", [False, True])
@pytest.mark.parametrize("a_by_columns", [False, True])
@pytest.mark.parametrize(("m", "k", "n"), [(130, 100, 150), (32, 2048, 1000), (64, 300, 65)])
def test_products_are_those_of_rounded_factors(m, k, n, a_by_columns, b_by_columns, gap, allowed):
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((m, k)).astype("f4"), rng.standard_normal((k, n)).astype("f4")
    found = engine.matmul(laid(a, a_by_columns, gap), laid(b, b_by_columns, gap))
    assert found.flags.c_contiguous and found.shape == (m, n) and found.dtype == np.float32
    near = [reference.rounded_to_bfloat16(one) for one in (a, b)]
    bound = np.abs(near[0]) @ np.abs(near[1])
    if a_by_columns and b_by_columns:  # BLAS's
        np.testing.assert_allclose(found, a.astype("f8") @ b, atol=1e-3)
    else:
        assert reference.error_in_eps(found, near[0] @ near[1], bound, "f4") < 4


def test_blas_does_what_is_small_narrow_double_or_not_allowed(monkeypatch, allowed):
    rng = np.random.default_rng(4)
    a, b = rng.standard_normal((64, 256)).astype("f4"), rng.standard_normal((256, 256)).astype("f4")
    assert matmul_bfloat16.matmul_bfloat16(a, b) is not None
    assert matmul_bfloat16.matmul_bfloat16(a[:2], b) is None
    few = np.ones((31, 4096), "f4")
    for weights in (np.ones((4096, 256), "f4"), np.ones((256, 4096), "f4").T):
        assert matmul_bfloat16.matmul_bfloat16(few, weights) is None
    assert matmul_bfloat16.matmul_bfloat16(np.ones((9999, 256), "f4"), b[:, :8]) is None
    exact = a.astype("f8") @ b
    np.testing.assert_allclose(engine.matmul(a.astype("f8"), b.astype("f8")), exact, rtol=1e-12)
    mkldnn.matmul.fp32_precision = "ieee"
    np.testing.assert_allclose(engine.matmul(a, b), exact, atol=1e-4)
    mkldnn.matmul.fp32_precision = "bf16"
    assert np.abs(engine.matmul(a, b) - exact).max() > 1e-3
    monkeypatch.setattr(_isa, "bfloat16_is_emulated", lambda: True)
    np.testing.assert_allclose(engine.matmul(a, b), exact, atol=1e-4)


def test_it_leaves_the_selection_of_convolutions_alone(allowed):
    before = conv.algorithm
    engine.matmul(np.ones((64, 256), "f4"), np.ones((256, 256), "f4"))
    assert conv.algorithm == before and conv.fp32_precision == "none"
