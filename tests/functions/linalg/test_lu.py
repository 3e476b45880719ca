"""LU factors: by their equations, beside PyTorch's, and by finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree, same_error

import convcore
from convcore import linalg
from convcore.autograd import gradcheck, gradgradcheck


@pytest.mark.parametrize("is_complex", [False, True])
def test_lu_has_its_equation_and_gradients(rng, is_complex):
    shape = (2, 4, 4)
    drawn = rng.normal(size=shape) + (1j * rng.normal(size=shape) if is_complex else 0)
    a = convcore.from_numpy(drawn).requires_grad_()
    p, lower, upper = linalg.lu(a)
    np.testing.assert_allclose((p @ lower @ upper).detach(), drawn, atol=1e-12)
    assert gradcheck(lambda a: linalg.lu(a)[1:], (a,))
    assert gradgradcheck(lambda a: linalg.lu(a)[1:], (a,), atol=1e-4)
    assert gradcheck(lambda a: linalg.lu_factor(a)[0], (a,))
    tall = linalg.lu(convcore.from_numpy(drawn[:, :, :2].copy()))
    np.testing.assert_allclose(tall.P @ tall.L @ tall.U, drawn[:, :, :2], atol=1e-12)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_lu_solve_solves(rng, left, adjoint):
    a, b = rng.normal(size=(2, 3, 3, 3))[0], rng.normal(size=(3, 3, 3))
    factors, pivots = linalg.lu_factor(convcore.tensor(a))
    x = linalg.lu_solve(factors, pivots, convcore.tensor(b), left=left, adjoint=adjoint).numpy()
    matrix = np.swapaxes(a, -2, -1) if adjoint else a
    np.testing.assert_allclose(matrix @ x if left else x @ matrix, b, atol=1e-9)


@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_agree_with_pytorch(torch, rng):
    a, b = rng.normal(size=(2, 3, 3)), rng.normal(size=(2, 3, 2))
    agree(torch, lambda m, a: m.linalg.lu_factor(a), a, rtol=1e-7)
    agree(torch, lambda m, a: m.linalg.lu(a), a, rtol=1e-7)
    agree(torch, lambda m, a: m.lu_unpack(*a.lu()), a, rtol=1e-7)
    agree(torch, lambda m, a, b: m.lu_solve(b, *m.linalg.lu_factor(a)), a, b, rtol=1e-7)
    same_error(torch, lambda m, a: m.linalg.lu_factor(m.zeros_like(a)), a)
    same_error(torch, lambda m, a: m.linalg.lu_factor(a), np.ones((2, 2), int))
    same_error(torch, lambda m, a: m.linalg.lu(a, pivot=False), a)
    same_error(torch, lambda m, a: m.linalg.lu(a[0]), np.ones((2, 2)))
    assert linalg.lu_factor_ex(convcore.zeros(2, 2)).info == 1


def test_gradient_of_other_matrices_is_refused():
    a = convcore.ones(2, 3, requires_grad=True)
    with pytest.raises(NotImplementedError, match="2 by 3"):
        linalg.lu_factor_ex(a).LU.sum().backward()


@pytest.mark.parametrize("wrong", [0, 4, -1, 2**31 - 1, -(2**31)])
def test_pivots_that_are_no_rows_are_refused(wrong):
    LU = convcore.eye(3)
    pivots = convcore.tensor([1, wrong, 3], dtype=convcore.int32)
    with pytest.raises(RuntimeError, match="pivots must be rows of the matrix, from 1 to 3"):
        linalg.lu_solve(LU, pivots, convcore.ones(3, 1))
    with pytest.raises(RuntimeError, match="pivots must be rows of the matrix, from 1 to 3"):
        convcore.lu_unpack(LU, pivots)
