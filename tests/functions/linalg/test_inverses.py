"""inv, solve, determinants: beside PyTorch's, by their equations, and by finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree, same_error

import convcore
from convcore import linalg
from convcore.autograd import gradcheck, gradgradcheck

DTYPES = ["float64", "complex128"]


def matrices(rng, *shape, dtype="float64"):
    """Return matrices far from singular ones."""
    drawn = rng.normal(size=shape) + 2 * np.eye(*shape[-2:])
    return drawn + 1j * rng.normal(size=shape) if dtype == "complex128" else drawn


def leaf(array):
    return convcore.from_numpy(array).requires_grad_()


@pytest.mark.parametrize("dtype", DTYPES)
def test_agree_with_pytorch(torch, rng, dtype):
    a, b = matrices(rng, 2, 3, 3, dtype=dtype), matrices(rng, 3, 4, dtype=dtype)
    agree(torch, lambda m, a: m.linalg.inv(a), a, rtol=1e-8)
    agree(torch, lambda m, a: m.inverse(a), a[0], rtol=1e-8)
    agree(torch, lambda m, a: a.det(), a, rtol=1e-8)
    agree(torch, lambda m, a: m.slogdet(a), a, rtol=1e-8)
    agree(torch, lambda m, a: m.logdet(a @ a.mH), a, rtol=1e-8)
    agree(torch, lambda m, a, b: m.linalg.solve(a, b), a, b, rtol=1e-8)
    agree(torch, lambda m, a, b: m.linalg.solve(a, b[:, 0]), a[0], b, rtol=1e-8)
    agree(torch, lambda m, a, b: m.linalg.solve(a, b.mT, left=False), a, b, rtol=1e-8)


def test_equations_hold(rng):
    a, b = matrices(rng, 4, 3, 3), rng.normal(size=(4, 3))
    x = linalg.solve(convcore.tensor(a), convcore.tensor(b)).numpy()
    np.testing.assert_allclose(np.einsum("nij,nj->ni", a, x), b, atol=1e-12)
    product = convcore.tensor(a) @ linalg.inv(convcore.tensor(a))
    np.testing.assert_allclose(product.numpy(), np.broadcast_to(np.eye(3), a.shape), atol=1e-12)
    sign, size = linalg.slogdet(convcore.tensor(a))
    np.testing.assert_allclose((sign * size.exp()).numpy(), np.linalg.det(a))


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_are_those_of_finite_differences(rng, dtype):
    a, b = leaf(matrices(rng, 2, 3, 3, dtype=dtype)), leaf(matrices(rng, 3, 2, dtype=dtype))
    for function in (linalg.inv, linalg.det, lambda a: linalg.slogdet(a)[1]):
        assert gradcheck(function, (a,))
        assert gradgradcheck(function, (a,))
    assert gradcheck(linalg.solve, (a, b))
    assert gradgradcheck(linalg.solve, (a, b))


def test_phase_of_a_complex_determinant_has_a_gradient(rng):
    a = leaf(matrices(rng, 3, 3, dtype="complex128"))
    assert gradcheck(lambda a: linalg.slogdet(a)[0], (a,))
    assert gradgradcheck(lambda a: linalg.slogdet(a)[0], (a,))


def test_gradient_of_a_zero_determinant_is_the_cofactors():
    a = convcore.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=convcore.float64, requires_grad=True)
    linalg.det(a).backward()
    np.testing.assert_allclose(a.grad.numpy(), [[4, -2], [-2, 1]], atol=1e-12)


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
@pytest.mark.parametrize("dtype", DTYPES)
def test_second_gradient_of_a_zero_determinant(rng, rank, dtype):
    """det is a polynomial: central differences of its gradient are exact but for rounding."""
    a = matrices(rng, 4, rank, dtype=dtype) @ matrices(rng, rank, 4, dtype=dtype)
    assert gradgradcheck(linalg.det, (leaf(a),), atol=1e-6)


def test_gradient_of_a_singular_product_that_lapack_may_call_regular():
    """NumPy's and SciPy's LAPACK round the last pivot of outer products otherwise."""
    for seed in range(200):
        v = leaf(np.random.default_rng(seed).normal(size=2).astype("float32"))
        (slope,) = convcore.autograd.grad(linalg.det(convcore.outer(v, v)), v, create_graph=True)
        (second,) = convcore.autograd.grad(slope.sum(), v)
        assert np.abs(second.numpy()).max() < 1e-4 * (1 + np.abs(v.detach().numpy()).max()) ** 2


def test_singular_matrices_are_named():
    one = convcore.tensor([[[2.0, 0.0], [0.0, 1.0]], [[1.0, 2.0], [2.0, 4.0]]])
    with pytest.raises(linalg.LinAlgError, match=r"Batch element 1\): The diagonal element 2 is"):
        linalg.inv(one)
    with pytest.raises(RuntimeError, match="the input matrix is singular"):
        linalg.solve(one[1], convcore.ones(2))
    inverse, info = linalg.inv_ex(one)
    assert info.tolist() == [0, 2]
    assert info.dtype == convcore.int32
    assert inverse[0].tolist() == [[0.5, 0], [0, 1]]
    assert inverse[1].isnan().all()
    assert linalg.slogdet(one[1]).sign == 0


def test_errors_are_pytorchs(torch):
    a = np.ones((2, 3))
    same_error(torch, lambda m, a: m.linalg.inv(a), a)
    same_error(torch, lambda m, a: m.linalg.inv(a[0]), a)
    same_error(torch, lambda m, a: m.linalg.inv(a), np.ones((2, 2), int))
    same_error(torch, lambda m, a: m.linalg.inv(a), np.ones((2, 2), "float16"))
    same_error(torch, lambda m, a: m.det(a), np.ones((2, 2), "float16"))
    same_error(torch, lambda m, a: m.linalg.solve(m.eye(2).double(), a.mT), a)
    same_error(torch, lambda m, a: m.linalg.solve(m.eye(2), a), a)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("place", range(4))
def test_nothing_is_known_of_the_inverse_of_what_holds_nan(torch, place, dtype):
    """LAPACK as NumPy has it may leave out products with zero, and with them the NaN."""
    matrices = np.stack([np.array([[2.0, 1.0], [1.0, 3.0]], dtype)] * 2)
    matrices[0].flat[place] = np.nan
    for m in (convcore, torch):
        a = m.tensor(matrices)
        for found in (m.linalg.inv(a), m.linalg.solve(a, m.eye(2, dtype=a.dtype)), m.inverse(a)):
            assert m.isnan(found[0]).all() and not m.isnan(found[1]).any()
