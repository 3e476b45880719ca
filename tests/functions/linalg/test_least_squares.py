"""Pseudo-inverses and least squares: beside PyTorch's and NumPy's, and by finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree, same_error

import convcore
from convcore import linalg
from convcore.autograd import gradcheck, gradgradcheck


@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (2, 3, 3)])
def test_pinv_is_numpys_and_differentiable(rng, shape):
    a = rng.normal(size=shape)
    np.testing.assert_allclose(linalg.pinv(convcore.tensor(a)).numpy(), np.linalg.pinv(a))
    leaf = convcore.from_numpy(a).requires_grad_()
    assert gradcheck(linalg.pinv, (leaf,))
    assert gradgradcheck(linalg.pinv, (leaf,))


def test_pinv_leaves_out_small_singular_values():
    a = convcore.diag(convcore.tensor([2.0, 1e-3]))
    assert linalg.pinv(a, rtol=0.1).tolist() == [[0.5, 0], [0, 0]]
    assert linalg.pinv(a, 0.1).tolist() == [[0.5, 0], [0, 0]]
    assert linalg.pinv(a, atol=0.1, hermitian=True).tolist() == [[0.5, 0], [0, 0]]


def test_lstsq_is_numpys_and_differentiable(rng):
    a, b = rng.normal(size=(5, 3)), rng.normal(size=(5, 2))
    found = linalg.lstsq(convcore.tensor(a), convcore.tensor(b), driver="gelsd")
    solution, residuals, rank, values = np.linalg.lstsq(a, b)
    np.testing.assert_allclose(found.solution.numpy(), solution)
    np.testing.assert_allclose(found.residuals.numpy(), residuals)
    np.testing.assert_allclose(found.singular_values.numpy(), values)
    assert found.rank == rank == 3
    leaves = [convcore.from_numpy(x).requires_grad_() for x in (a, b)]
    assert gradcheck(lambda a, b: linalg.lstsq(a, b).solution, leaves)
    assert gradgradcheck(lambda a, b: linalg.lstsq(a, b).solution, leaves)


def test_agree_with_pytorch(torch, rng):
    a, b = rng.normal(size=(2, 4, 3)), rng.normal(size=(2, 4))
    agree(torch, lambda m, a: m.linalg.pinv(a @ a.mT, hermitian=True), a[0].T.copy(), rtol=1e-8)
    agree(torch, lambda m, a, b: m.linalg.lstsq(a, b).solution, a, b, rtol=1e-8)
    agree(torch, lambda m, a, b: m.linalg.lstsq(a.detach(), b.detach())[1:], a, b, rtol=1e-8)
    same_error(torch, lambda m, a, b: m.linalg.lstsq(a, b[:, :2]), a, b)
    same_error(torch, lambda m, a, b: m.linalg.lstsq(a, b, driver="qr"), a, b)
    same_error(torch, lambda m, a: m.linalg.pinv(a[0]), np.ones((2, 2), "float32"))


def test_the_gradient_of_several_pseudo_inverses_of_a_matrix_has_its_shape(rng):
    """A tolerance of its own for each: there are more inverses than matrices."""
    x = convcore.from_numpy(rng.standard_normal((4, 2))).requires_grad_()
    inverses = linalg.pinv(x, convcore.full((3, 1), 1e-3))
    assert inverses.shape == (3, 1, 2, 4)
    (grad,) = convcore.autograd.grad(inverses.sum(), x)
    assert grad.shape == x.shape
    assert gradcheck(lambda x: linalg.pinv(x, convcore.full((3,), 1e-3)), x)
